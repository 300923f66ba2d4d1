/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import * as t from 'io-ts';
import {
  concatMap,
  defer,
  filter,
  finalize,
  identity,
  lastValueFrom,
  map,
  noop,
  type Observable,
  retry,
  share,
  Subject,
  switchMap,
  take,
  takeUntil,
  takeWhile,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  connectionStatus,
  countWindow,
  decodeWith,
  feedStats,
  type FeedWindow,
  filterValues,
  type Frame,
  frames,
  freshness,
  gaps,
  mapValues,
  shareFeed,
  slidingWindow,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
  tumblingWindow,
  whereBytes,
  whereField,
  type WindowKey,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import { feedMetrics } from '../../src/otel/index.js';
import type { FeedEvent, Gap, RelayedEvent, Stopped } from '../../src/protocol/event.js';
import { freeDelayMs } from '../../src/protocol/feed-state.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { resolveRelayOptions } from '../../src/relay/relay-options.js';
import { type LedgerStep, settle } from '../../src/settle/index.js';
import { type Plan, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { atEnd, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { startSdk } from '../otel/sdk.js';
import { optionsFor } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { accept, startWire, text, wsFrame } from '../support/wire.js';

const folder = tempFolder();
const started = async (plan: Plan = 'developer') => {
  const service = await startTradeFeedService({ sources: {} });
  atEnd(() => service.shutdown());
  const account = service.createAccount({ plan });
  const options: TradeFeedOptions = { baseUrl: service.baseUrl, apiKey: account.createApiKey() };
  return { service, options };
};

type Hop = 'in the main thread' | 'in a worker' | 'over a relay';
const hops: readonly Hop[] = ['in the main thread', 'in a worker', 'over a relay'];

/** Returns the feed after a hop. Each subscription creates a new relay, like after a restart. */
const feedAfter = (hop: Hop, options: TradeFeedOptions): Observable<RelayedEvent> => {
  const events$ = tradeFeedEvents$('market', { ...options, receiveIn: hop === 'in a worker' ? 'worker' : 'main' });
  if (hop !== 'over a relay') return events$;
  return defer(() => serveFeed(events$, { lingerMs: 0 })).pipe(
    switchMap(({ web }) => relayFeed$(web.url, { maxFeedStops: 1 })),
  );
};

/** Ends the open connections, as if another client connected with their accounts. */
const replace = (service: TradeFeedService): void => service.closeConnections(4001, 'connection replaced');

describe.each(hops)('a feed that stops, %s', (hop) => {
  it.each(['connection-replaced', 'invalid-api-key'])(
    'emits `stopped` with the failure as the last event before the error: %s',
    async (code) => {
      const { service, options } = await started();
      const apiKey = code === 'invalid-api-key' ? 'wrong' : options.apiKey!;
      const events: RelayedEvent[] = [];
      const error: unknown = await feedAfter(hop, { ...options, apiKey })
        .forEach((event) => {
          events.push(event);
          if (event.type === 'opened') replace(service);
        })
        .catch(identity);
      const last = events.filter(({ type }) => type !== 'watermark').at(-1) as Stopped;
      expect(error).toMatchObject({ code, verdict: 'stop' });
      expect([last.type, last.failure, events.at(-1)]).toEqual(['stopped', error, last]);
      expect(events.filter(({ type }) => type === 'stopped')).toHaveLength(1);
    },
  );

  it('is a single outage for every operator, until the next subscription emits `opened`', async () => {
    const { service, options } = await started();
    const pump = setInterval(() => service.push('market', '{}'), 5);
    atEnd(() => clearInterval(pump));
    const log = feedLog(folder.path(`stopped-${hop.replaceAll(' ', '-')}`));
    await using sdk = startSdk();
    const events: RelayedEvent[] = [];
    const done = new Subject<void>();
    let isReplaced = false;
    let reopenedAt = Infinity;
    const feed$ = feedAfter(hop, options).pipe(
      tap((event) => {
        events.push(event);
        if (event.type === 'frame' && !isReplaced) {
          isReplaced = true;
          replace(service);
        }
        if (event.type === 'opened' && isReplaced) reopenedAt = event.at;
      }),
      retry({ delay: () => timer(450) }),
      shareFeed({ lingerMs: 0 }),
      takeUntil(done),
    );
    const all = <T>(seen$: Observable<T>) => lastValueFrom(seen$.pipe(toArray()));
    // The feed ends when both kinds of windows are complete again.
    const isComplete = { tumbling: false, sliding: false };
    const completes = (kind: keyof typeof isComplete) =>
      tap<FeedWindow<unknown>>(({ complete, start }) => {
        isComplete[kind] ||= complete && start >= reopenedAt;
        if (isComplete.tumbling && isComplete.sliding) queueMicrotask(() => done.next());
      });
    // A ledger has the first frame 7 ms later.
    const ledger$ = feed$.pipe(
      filter((event) => event.type === 'frame'),
      take(1),
      concatMap(({ receivedAt }): LedgerStep<number>[] => [
        { type: 'ledger', at: receivedAt + 7, confirmed: [{ key: receivedAt }] },
        { type: 'ledger', at: receivedAt + 8, confirmed: [] },
      ]),
    );
    const [tumbling, byKey, sliding, counted, stats, statuses, seenGaps, ages, settled] = await Promise.all([
      all(feed$.pipe(tumblingWindow<RelayedEvent>({ lengthMs: 100 }), completes('tumbling'))),
      all(feed$.pipe(tumblingWindow<RelayedEvent, string>({ lengthMs: 100, by: (frame) => frame.feed }))),
      all(feed$.pipe(slidingWindow<RelayedEvent>({ lengthMs: 200, everyMs: 100 }), completes('sliding'))),
      all(feed$.pipe(countWindow<RelayedEvent>(10))),
      all(feed$.pipe(feedStats({ everyMs: 100 }))),
      all(feed$.pipe(connectionStatus())),
      all(feed$.pipe(gaps())),
      all(feed$.pipe(freshness({ maxAgeMs: 300 }))),
      all(feed$.pipe(settle(ledger$, { key: ({ receivedAt }: AnyFrame) => receivedAt, withinMs: 60_000 }))),
      all(feed$.pipe(log.append())),
      all(feed$.pipe(feedMetrics(sdk.options))),
    ]);

    // The expected gap: from the end of the failure's connection to the next `opened`.
    const { failure } = events.find(({ type }) => type === 'stopped') as Stopped;
    const reopened = events.findLast((event) => event.type === 'opened')!;
    const [from, to] = [failure.endedAt, reopened.at];
    const expectedGap = { type: 'gap', from, to, durationMs: to - from };
    expect(failure.code).toBe('connection-replaced');
    expect(expectedGap.durationMs).toBeGreaterThanOrEqual(440);
    expect(seenGaps).toEqual([{ ...expectedGap, failure }]);

    const overlaps = ({ start, end }: FeedWindow<unknown>) => start < expectedGap.to && end > expectedGap.from;
    for (const windows of [tumbling, sliding]) {
      expect(windows.filter(overlaps).length).toBeGreaterThan(3);
      expect(windows.filter(overlaps).filter(({ complete }) => complete)).toEqual([]);
      for (const window of windows.filter(overlaps))
        expect(window.gaps.map(({ from }) => from)).toEqual([expectedGap.from]);
      const last = windows.find((window) => overlaps(window) && window.end >= expectedGap.to);
      expect(last?.gaps).toMatchObject([{ type: 'gap', from, failure }]);
      // While the connection settles, a window has the gap up to its own end.
      expect(last?.gaps[0]?.to).toBeGreaterThanOrEqual(to);
      expect(windows.some((window) => !overlaps(window) && window.complete)).toBe(true);
    }
    const shown = ({ start, count, complete, reason }: FeedWindow<unknown>) => ({ start, count, complete, reason });
    expect(byKey.map(shown)).toEqual(tumbling.filter(({ count }) => count > 0).map(shown));
    expect(byKey.filter(overlaps).every(({ reason }) => reason === 'gap')).toBe(true);
    expect(counted.flatMap((window) => window.gaps)).toEqual([{ ...expectedGap, failure }]);

    expect(stats.at(-1)).toMatchObject({ gaps: 1, lostMs: expectedGap.durationMs });
    const lost = stats.map(({ lostMs }) => lostMs);
    // Until its gap comes, an outage lasts up to the clock, which can be ahead of an event that waits to be handled.
    const known = lost.indexOf(expectedGap.durationMs);
    expect(new Set(lost.slice(known))).toEqual(new Set([expectedGap.durationMs]));
    for (const figures of [
      stats.map(({ totalFrames }) => totalFrames),
      stats.map(({ gaps }) => gaps),
      lost.slice(0, known),
    ])
      expect(figures).toEqual([...figures].sort((a, b) => a - b));
    const frames = events.filter((event) => event.type === 'frame');
    const newestAt = frames.findLast(({ receivedAt }) => receivedAt <= from)?.receivedAt ?? NaN;
    expect(settled.find(({ type }) => type === 'outcome')).toMatchObject({ state: 'confirmed', leadMs: 7 });
    expect(ages).toContainEqual({ state: 'stale', since: newestAt + 300, newestAt, maxAgeMs: 300 });
    expect(ages.findLast(({ state }) => state === 'fresh')?.since).toBeGreaterThanOrEqual(to);
    expect(stats.at(-1)?.totalFrames).toBe(frames.length);

    const measured = (await sdk.collect())['trade_feed.gap.duration']?.series.map(({ value }) => value);
    expect(measured).toEqual([{ count: 1, sum: expectedGap.durationMs / 1_000 }]);

    const states = statuses.map(({ state }) => state);
    const changes = states.filter((state, n) => state !== states[n - 1]);
    expect(changes).toEqual(['connecting', 'live', 'stopped', 'reconnecting', 'live']);
    expect(statuses.find(({ state }) => state === 'reconnecting')).toMatchObject({ since: expectedGap.from, failure });

    const records = await all(log.read$({ follow: false }));
    const inLog = records.flatMap((event) => (event.type === 'gap' ? [[event.from, event.to]] : []));
    expect(inLog).toEqual([[expectedGap.from, expectedGap.to]]);
    expect(records.filter(({ type }) => type === 'frame')).toHaveLength(frames.length);
  });
});

const afterAStop = 'after a stop and a new subscription';
const nextToAnother = 'next to another operator on one shared feed';
const asALateSubscriber = 'for a late subscriber of a shared feed';
const toALog = 'over a log';
const places = [...hops, toALog, afterAStop, nextToAnother, asALateSubscriber] as const;

/** Returns the feed at a place, and ends what it needs at the end of the test. */
const feedAt = (place: (typeof places)[number], options: TradeFeedOptions): Observable<RelayedEvent> => {
  if (place === nextToAnother) {
    const shared$ = tradeFeedEvents$('market', options).pipe(shareFeed({ lingerMs: 0 }));
    const other = shared$.pipe(countWindow<RelayedEvent>(7)).subscribe();
    atEnd(() => other.unsubscribe());
    return shared$;
  }
  if (place === asALateSubscriber) {
    const shared$ = tradeFeedEvents$('market', options).pipe(shareFeed({ lingerMs: 0 }));
    const isOpen$ = shared$.pipe(filter(({ type }) => type === 'opened'));
    atEnd(() => first.unsubscribe());
    // It joins while the connection settles.
    const first = shared$.subscribe();
    return isOpen$.pipe(
      take(1),
      switchMap(() => shared$),
    );
  }
  if (place === afterAStop) return tradeFeedEvents$('market', options).pipe(retry({ delay: () => timer(50) }));
  if (place !== toALog) return feedAfter(place, options);
  const log = feedLog(folder.path(`complete-${String(options.apiKey)}`));
  const writing = tradeFeedEvents$('market', options).pipe(log.append()).subscribe();
  atEnd(() => writing.unsubscribe());
  return log.read$();
};

describe.each<Plan>(['developer', 'free'])('on the plan %s, a connection is complete', (plan) => {
  it.each(places)(
    'from the same time, %s: every lost frame is in a gap, and no complete window misses one',
    async (place) => {
      const { service, options } = await started(plan);
      const sent: { readonly n: number; readonly expectedAt: number }[] = [];
      const push = () => {
        sent.push({ n: sent.length + 1, expectedAt: Date.now() + (plan === 'free' ? freeDelayMs : 0) });
        service.push('market', `${sent.length}`);
      };
      const accepted: number[] = [];
      const listening = service.events$.subscribe(
        (event) => event.type === 'handshake-accepted' && accepted.push(event.at),
      );
      const pump = setInterval(push, 5);
      atEnd(
        () => clearInterval(pump),
        () => listening.unsubscribe(),
      );

      const events: RelayedEvent[] = [];
      const windows: FeedWindow<AnyFrame>[] = [];
      const seenGaps: Gap[] = [];
      const feed$ = feedAt(place, options).pipe(share());
      const subscription = feed$.pipe(gaps()).subscribe((gap) => seenGaps.push(gap));
      subscription.add(feed$.subscribe((event) => events.push(event)));
      subscription.add(
        feed$.pipe(tumblingWindow<RelayedEvent>({ lengthMs: 50 })).subscribe((each) => windows.push(each)),
      );
      const isCompleteAfter = (time: number) =>
        windows.some(({ start, count, complete }) => complete && count > 0 && start >= time);
      await waitFor(() => isCompleteAfter(0));
      if (place === afterAStop) replace(service);
      else service.dropConnections();
      await waitFor(() => seenGaps.length > 0 && isCompleteAfter(seenGaps[0]!.to));
      subscription.unsubscribe();

      // A gap ends when the connection is known to be complete, which is never before the service has registered it.
      expect(seenGaps).toHaveLength(1);
      const [gap] = seenGaps as [Gap];
      const opened = events.findLast((event) => event.type === 'opened')!;
      expect([accepted.length, gap.to <= opened.at + freeDelayMs]).toEqual([2, true]);
      if (plan === 'free') expect(gap.to).toBeGreaterThanOrEqual(accepted[1]! + freeDelayMs - 5);
      const frames = events.filter((event) => event.type === 'frame');
      const first = frames.find(({ receivedAt }) => receivedAt >= opened.at)!;
      const issued = events.findLast((event) => event.type === 'ticket-issued')!;
      if (first.receivedAt < issued.at + freeDelayMs - 5) expect(gap.to).toBe(opened.at);
      else expect(gap.to).toBe(Math.min(first.receivedAt, opened.at + freeDelayMs));

      // Frames that were lost before the client read the close are missing from then on.
      const receivedAt = new Map(frames.map((frame) => [Number(frame.text()), frame.receivedAt]));
      const numbers = [...receivedAt.keys()];
      const lost = sent.filter(({ n }) => n > numbers[0]! && n < numbers.at(-1)! && !receivedAt.has(n));
      const lostAt = lost.map(({ expectedAt }) => Math.max(expectedAt, gap.from));
      expect(lostAt.filter((at) => at > gap.to + 1)).toEqual([]);
      expect(lost.length).toBeGreaterThan(plan === 'free' ? 20 : 0);
      const early = sent.filter(({ n }) => n < numbers[0]!).map(({ expectedAt }) => expectedAt);
      for (const { start, end, count, complete } of windows) {
        if (!complete) continue;
        const inside = (at: number): boolean => at >= start && at < end;
        expect([...lostAt, ...early].filter((at) => inside(at) && inside(at - 1))).toEqual([]);
        expect(count).toBe([...receivedAt.values()].filter(inside).length);
      }
    },
  );
});

const { batchMs } = resolveRelayOptions();
const lengthMs = 50;
const runMs = 450;

/** Starts a service that pushes a frame every 5 ms. */
const steadyService = async () => {
  const { service, options } = await started();
  const pump = setInterval(() => service.push('market', 'x'.repeat(200)), 5);
  atEnd(() => clearInterval(pump));
  return options;
};

/** Blocks the thread for 20 ms now and then, like a page that renders. */
const withWork = <E>(source: Observable<E>): Observable<E> =>
  defer(() => {
    const work = setInterval(() => {
      const until = performance.now() + 20;
      while (performance.now() < until);
    }, 70);
    return source.pipe(finalize(() => clearInterval(work)));
  });

/**
 * Returns the windows of a feed, each with the number of frames that were received in its time, counted before the operator, and with what its windows
 * by key, on the same shared feed, say about it.
 */
const windowsOf = async (source: Observable<RelayedEvent>) => {
  const received: number[] = [];
  const windows: FeedWindow<unknown>[] = [];
  const keyed: (FeedWindow<AnyFrame> & WindowKey<number>)[] = [];
  const shared$ = source.pipe(
    tap((event) => event.type === 'frame' && received.push(event.receivedAt)),
    share(),
  );
  const by = ({ receivedAt }: AnyFrame) => Math.floor(receivedAt) % 3;
  const byKey = tumblingWindow<RelayedEvent, number>({ lengthMs, by });
  shared$.pipe(byKey).subscribe((window) => keyed.push(window));
  await shared$.pipe(tumblingWindow<RelayedEvent>({ lengthMs })).forEach((window) => windows.push(window));
  for (const { frames, key } of keyed) expect(frames.map(by)).toEqual(frames.map(() => key));
  return windows.map(({ start, end, count, complete }) => ({
    ...{ start, count, complete },
    byKey: keyed
      .filter((each) => each.start === start && each.complete === complete)
      .reduce((sum, each) => sum + each.count, 0),
    received: received.filter((at) => at >= start && at < end).length,
    isInside: start >= Math.min(...received) && end <= Math.max(...received),
  }));
};

const expectExact = (windows: Awaited<ReturnType<typeof windowsOf>>): void => {
  expect(windows.map(({ count }) => count)).toEqual(windows.map(({ received }) => received));
  expect(windows.map(({ byKey }) => byKey)).toEqual(windows.map(({ received }) => received));
  const inside = windows.filter(({ isInside }) => isInside);
  expect(inside.length).toBeGreaterThan(5);
  expect(inside.filter(({ complete }) => !complete)).toEqual([]);
  expect(windows.slice(1).map(({ start }) => start)).toEqual(windows.slice(0, -1).map(({ start }) => start + lengthMs));
};

describe('windows contain exactly the frames that were received in their time', () => {
  /** Completes with the first frame that was received long enough after the first one, once `isEnough`. */
  const forAWhile = <E extends RelayedEvent | FeedEvent>(source: Observable<E>, isEnough = (): boolean => true) =>
    defer(() => {
      let begin: number | undefined;
      return source.pipe(
        takeWhile((event) => {
          if (event.type !== 'frame') return true;
          begin ??= event.receivedAt;
          return event.receivedAt < begin + runMs || !isEnough();
        }, true),
      );
    });

  it('of a feed in a worker, even if the main thread is busy at times', async () => {
    const options = await steadyService();
    expectExact(await windowsOf(withWork(forAWhile(tradeFeedEvents$('market', { ...options, receiveIn: 'worker' })))));
  });

  it.each(['main', 'worker'] as const)('of a relay whose feed is received in: %s', async (receiveIn) => {
    const options = await steadyService();
    const { web } = await serveFeed(tradeFeedEvents$('market', { ...options, receiveIn }), { lingerMs: 0, batchMs });
    expectExact(await windowsOf(withWork(forAWhile(relayFeed$(web.url)))));
  });

  it('of a relay whose connection breaks, with resumed frames in the windows of their own time', async () => {
    const options = await steadyService();
    const { web } = await serveFeed(tradeFeedEvents$('market', options), { batchMs });
    const backoff = { initialDelayMs: 100, maxDelayMs: 100, jitter: 'none' } as const;
    let frames = 0;
    const breaking$ = relayFeed$(web.url, { backoff }).pipe(
      tap(({ type }) => {
        if (type === 'frame' && (frames += 1) === 20) web.reset();
      }),
    );
    const windows = await windowsOf(forAWhile(breaking$, () => web.requests.length > 1));
    expect(web.requests.length).toBeGreaterThan(1);
    expectExact(windows);
  });

  it('of a log', async () => {
    const options = await steadyService();
    const log = feedLog(folder.path('market'));
    await forAWhile(tradeFeedEvents$('market', options))
      .pipe(log.append())
      .forEach(() => undefined);
    expectExact(await windowsOf(log.read$({ follow: false })));
    expectExact(await windowsOf(log.read$({ follow: false, speed: 20 })));
  });
});

describe('windows of a quiet feed', () => {
  const isEmpty = ({ count }: FeedWindow<unknown>) => count === 0;

  it.each<Hop>(['in a worker', 'over a relay'])('close even if no frame arrives, %s', async (hop) => {
    const { options } = await started();
    const lateness: number[] = [];
    await feedAfter(hop, options)
      .pipe(
        tumblingWindow<RelayedEvent>({ lengthMs: 100 }),
        tap(({ end }) => lateness.push(Date.now() - end)),
        filter((window) => window.complete && isEmpty(window)),
        take(4),
      )
      .forEach(() => undefined);
    expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
    expect(lateness.length).toBeGreaterThanOrEqual(4);
  });
});

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

const fromLog = 'from a log';
const pushedAfter = (
  hop: Hop | typeof fromLog,
  service: TradeFeedService,
  options: TradeFeedOptions,
): Observable<RelayedEvent> => {
  if (hop !== fromLog) return feedAfter(hop, options).pipe(pushing(service));
  const log = feedLog(folder.path('filters'));
  const appended$ = defer(() => tradeFeedEvents$('market', options).pipe(pushing(service), log.append(), toArray()));
  return appended$.pipe(concatMap(() => log.read$({ follow: false })));
};

describe.each([...hops, fromLog] as const)('filters %s', (hop) => {
  it('emit the same frames side by side, even after subscribing again', async () => {
    const { service, options } = await started();
    expect(await throughAll(pushedAfter(hop, service, options))).toEqual(expected);
    if (hop === fromLog) return;
    // Waits until the first connection is closed, the relay's included.
    await lastValueFrom(timer(200));
    expect(await throughAll(pushedAfter(hop, service, options))).toEqual(expected);
  });
});

/** The filter directly after the feed, where refused frames are never created, and after another operator. */
const sides: readonly (readonly [string, <E>(source: Observable<E>) => Observable<E>])[] = [
  ['directly after a feed', identity],
  ['behind another operator', (source) => source.pipe(tap(noop))],
];
describe.each(sides)('filters %s', (_, between) => {
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
