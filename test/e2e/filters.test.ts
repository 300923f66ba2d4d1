import { afterEach, describe, expect, it } from '@jest/globals';
import * as t from 'io-ts';
import {
  concatMap,
  defer,
  from,
  identity,
  lastValueFrom,
  map,
  noop,
  type Observable,
  switchMap,
  takeWhile,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  countWindow,
  decodeWith,
  filterValues,
  type Frame,
  frames,
  mapValues,
  shareFeed,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
  whereBytes,
  whereField,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { Web } from '../relay/support.js';
import { optionsFor } from '../support/feed.js';
import { accept, startWire, text, wsFrame } from '../support/wire.js';

const folder = tempFolder();
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const started = async () => {
  const service = await startTradeFeedService({ sources: {} });
  closing.push(() => service.shutdown());
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return { service, options: { baseUrl: service.baseUrl, apiKey } };
};

const payloads = [
  ...['a', 'b', 'A', 'c', 'a'].map((to, n) => JSON.stringify({ n, from: 'a', to })),
  '{"n":5,"to":"b","t\\u006f" : "\\u0061"}',
  '{"n":6,"to":"a","to":"b"}',
  `{"n":7,"logs":[{"to":"b"}],"input":"${'é'.repeat(3_000)}","to":"a"}`,
  '{"to":"a"',
  '{"n":8,"to":"end"}',
];

const Numbered = t.type({ n: t.number });
const numbers = <E>(source: Observable<E>) =>
  (source as Observable<RelayedEvent>).pipe(
    frames(),
    decodeWith(Numbered),
    map(({ value }) => value.n),
  );

type Operator = <E extends RelayedEvent>(source: Observable<E>) => Observable<unknown>;
/** Each operator, with the numbers of the payloads that it emits. */
const operators: Readonly<Record<string, readonly [Operator, readonly number[]]>> = {
  'whereField with a value': [(source) => source.pipe(whereField('to', 'a'), numbers), [0, 4, 5, 7]],
  'whereField with a set, and ignoreCase': [
    (source) => source.pipe(whereField('to', new Set(['A', 'C']), { ignoreCase: true }), numbers),
    [0, 2, 3, 4, 5, 7],
  ],
  'whereField with a function': [
    (source) =>
      source.pipe(
        whereField('n', (n) => Number(n) > 5),
        numbers,
      ),
    [6, 7, 8],
  ],
  'whereField in a list': [(source) => source.pipe(whereField('logs[].to', ['b', 'c']), numbers), [7]],
  'whereBytes with many needles': [
    (source) => source.pipe(whereBytes('"to":"c"', '"to":"end"', 'éé', '\\u'), numbers),
    [3, 5, 7, 8],
  ],
  mapValues: [
    (source) =>
      source.pipe(
        mapValues((each) => each.text().length),
        frames(),
        map((length) => Number(length > 100)),
      ),
    payloads.map((each) => Number(each.length > 100)),
  ],
  filterValues: [
    (source) =>
      source.pipe(
        filterValues((event) => !event.text().includes('"from"')),
        numbers,
      ),
    [5, 6, 7, 8],
  ],
};
const expected = Object.fromEntries(Object.entries(operators).map(([name, [, numbers]]) => [name, numbers]));

/** Applies each operator to its own subscription of one shared feed. */
const throughAll = async (feed$: Observable<RelayedEvent>): Promise<unknown> => {
  const shared$ = feed$.pipe(shareFeed({ lingerMs: 0 }));
  const all = Object.entries(operators).map(async ([name, [operator]]) => [
    name,
    await lastValueFrom(operator(shared$).pipe(toArray())),
  ]);
  return Object.fromEntries(await Promise.all(all));
};

const isLast = (event: RelayedEvent): boolean => event.type === 'frame' && event.text() === payloads.at(-1);
/** Pushes the payloads when the feed opens, and ends it after the last one. */
const pushing =
  (service: TradeFeedService) =>
  (feed$: Observable<RelayedEvent>): Observable<RelayedEvent> =>
    feed$.pipe(
      tap(({ type }) => type === 'opened' && setImmediate(() => payloads.map((each) => service.push('market', each)))),
      takeWhile((event) => !isLast(event), true),
    );

type Hop = 'in the main thread' | 'in a worker' | 'over a relay' | 'from a log';
const feedAfter = (hop: Hop, service: TradeFeedService, options: TradeFeedOptions): Observable<RelayedEvent> => {
  const events$ = tradeFeedEvents$('market', { ...options, receiveIn: hop === 'in a worker' ? 'worker' : 'main' });
  if (hop === 'from a log') {
    const log = feedLog(folder.path('filters'));
    const appended = lastValueFrom(events$.pipe(pushing(service), log.append(), toArray()));
    return from(appended).pipe(concatMap(() => log.read$({ follow: false })));
  }
  if (hop !== 'over a relay') return events$.pipe(pushing(service));
  return defer(async () => {
    const relay = createRelay(events$, { batchMs: 0, lingerMs: 0 });
    const web = await Web.start(relayHandler(relay, { authorize: () => true }));
    closing.push(
      () => relay.close(),
      () => web[Symbol.asyncDispose](),
    );
    return relayFeed$(web.url);
  }).pipe(switchMap((feed$) => feed$.pipe(pushing(service))));
};

describe.each<Hop>(['in the main thread', 'in a worker', 'over a relay', 'from a log'])('filters %s', (hop) => {
  it('emit the same frames side by side, even after subscribing again', async () => {
    const { service, options } = await started();
    expect(await throughAll(feedAfter(hop, service, options))).toEqual(expected);
    if (hop === 'from a log') return;
    // Waits until the first connection is closed, the relay's included.
    await lastValueFrom(timer(200));
    expect(await throughAll(feedAfter(hop, service, options))).toEqual(expected);
  });
});

/** The filter directly after the feed, where refused frames are never created, and after another operator. */
const places: readonly (readonly [string, <E>(source: Observable<E>) => Observable<E>])[] = [
  ['directly after a feed', identity],
  ['behind another operator', (source) => source.pipe(tap(noop))],
];
describe.each(places)('filters %s', (_, between) => {
  it.each(['main', 'worker'] as const)('emit exactly the matching frames when received in: %s', async (receiveIn) => {
    const { service, options } = await started();
    const feed$ = tradeFeedEvents$('market', { ...options, receiveIn }).pipe(
      between,
      whereField('to', new Set(['a', 'end'])),
      whereBytes('"n":4', '"n":5', '"n":7', '"n":8'),
      pushing(service),
      numbers,
      toArray(),
    );
    expect(await lastValueFrom(feed$)).toEqual([4, 5, 7, 8]);
  });

  it('notice each change of a set before the next frame, and emit bytes that never change', async () => {
    const names = Array.from({ length: 1_000 }, (_, n) => `0x${String(n).padStart(40, 'a')}`);
    const sent = Array.from({ length: 8_000 }, (_, n) => names[(n * 37) % 1_000] as string);
    const frameOf = (to: string) => text(JSON.stringify({ to }));
    const fragments = [wsFrame(1, '{"to":', false), wsFrame(0, `"${names[3]}"}`)];
    await using wire = await startWire({ handshake: [accept(...sent.map(frameOf), ...fragments, frameOf('end'))] });
    // The subscriber swaps out the name that it gets, so the set keeps its size.
    const accepted = new Set(['end', ...names.slice(0, 50)]);
    const replace = (set: Set<string>, to: string) =>
      set.delete(to) && set.add(names[(names.indexOf(to) * 7 + 11) % 1_000] as string);
    const model = new Set(accepted);
    const expected = [...sent, names[3] as string, 'end'].filter((to) => model.has(to) && replace(model, to));
    const frames$ = tradeFeed$('market', optionsFor(wire)).pipe(
      between,
      whereField('to', accepted),
      tap((frame) => replace(accepted, toOf(frame))),
      takeWhile((frame) => toOf(frame) !== 'end', true),
      toArray(),
    );
    const received = await lastValueFrom(frames$);
    await lastValueFrom(timer(0));
    expect(received.map(toOf)).toEqual(expected);
    expect(received.map(({ data }) => data.toString())).toEqual(expected.map((to) => JSON.stringify({ to })));
  });

  it('notice a change of a set between two reads', async () => {
    const { service, options } = await started();
    const push = (...all: readonly string[]) => all.forEach((to) => service.push('market', JSON.stringify({ to })));
    const refused = Array.from({ length: 100 }, (_, n) => `refused ${n}`);
    const accepted = new Set(['first', 'old', 'end', ...Array.from({ length: 30 }, (_, n) => `other ${n}`)]);
    const changed = () => {
      accepted.delete('old');
      accepted.add('new');
      push('old', 'new', 'end');
    };
    const events$ = tradeFeedEvents$('market', options).pipe(
      between,
      whereField('to', accepted),
      tap(({ type }) => type === 'opened' && push('first', ...refused)),
      frames(),
      map(toOf),
      tap((to) => to === 'first' && setImmediate(changed)),
      takeWhile((to) => to !== 'end'),
      toArray(),
    );
    expect(await lastValueFrom(events$)).toEqual(['first', 'new']);
  });

  it('end the feed with the exception of a function, without retrying', async () => {
    const thrown = new Error('of the function');
    await using wire = await startWire({
      handshake: [accept(text('{"to":"a"}'), text('{"to":"b"}'), text('{"to":"c"}'))],
    });
    const values: string[] = [];
    const isA = (to: string) => {
      values.push(to);
      if (to === 'b') throw thrown;
      return true;
    };
    const frames$ = tradeFeed$('market', optionsFor(wire)).pipe(
      between,
      whereField('to', isA),
      tap((frame) => values.push(frame.text())),
    );
    await expect(lastValueFrom(frames$)).rejects.toBe(thrown);
    expect(values).toEqual(['a', '{"to":"a"}', 'b']);
    expect(wire.handshakes).toHaveLength(1);
  });
});

const toOf = (frame: Frame): string => (frame.json() as { readonly to: string }).to;

describe('filters', () => {
  it('pass the outage on to a window after them', async () => {
    const { service, options } = await started();
    const wallets = new Set(['a']);
    const windows = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 1 } }).pipe(
      tap((event) => {
        if (event.type === 'opened') setImmediate(() => payloads.map((each) => service.push('market', each)));
        if (isLast(event)) service.dropConnections();
      }),
      whereField('to', wallets),
      decodeWith(Numbered),
      filterValues(({ value }) => value.n !== 4),
      mapValues(({ value }) => value.n),
      countWindow(4),
      takeWhile(({ complete }) => complete, true),
      toArray(),
    );
    const [window] = await lastValueFrom(windows);
    expect(window).toMatchObject({ frames: [0, 5, 7, 0], complete: false, gaps: [{ type: 'gap' }] });
  });
});
