import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { defer, type Observable, Subject } from 'rxjs';
import { tradeFeedEvents$ } from '../../src/index.js';
import { feedLog, type ReadOptions } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { createRelay, type RelayOptions, type RelayReceiver } from '../../src/relay/index.js';
import { atEnd, quick, receive, type Receiver, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { opened } from '../operators/stream.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import { Client, Clock, frame, Raw, Response, Source } from './support.js';

describe('restart', () => {
  const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
  const whole = (events$: Observable<RelayedEvent>) => events$;
  const end = (how: 'stops' | 'completes', source: Source): void =>
    how === 'stops' ? source.subject.error(replaced) : source.subject.complete();

  /** Creates a relay whose source is new for each subscription. */
  const restartable = () => {
    const clock = new Clock();
    const sources: Source[] = [];
    const source$ = defer(() => {
      sources.push(new Source());
      return sources.at(-1)!.events$;
    });
    const relay = createRelay(source$, { scheduler: clock.scheduler });
    const join = (receiver?: RelayReceiver) => new Client(relay, receiver);
    return { clock, sources, relay, join, source: () => sources.at(-1)! };
  };

  it('does nothing while the source is active', () => {
    const { relay, join, source } = restartable();
    const client = join();
    relay.restart();
    expect([source().active, client.isComplete]).toEqual([1, false]);
    relay.close();
    expect(client.isComplete).toBe(true);
  });

  it.each(['stops', 'completes'] as const)(
    'makes the next client subscribe again to a source that %s, and lets current clients read to the end',
    (how) => {
      for (const select of [undefined, whole]) {
        const { clock, source, sources, relay, join } = restartable();
        const response = new Response();
        const [slow, quick] = [join({ response, select }), join({ select })];
        source().frames('a');
        clock.pass(16);
        response.writableNeedDrain = true;
        source().frames('b', 'c');
        clock.pass(16);
        source().frames('d');
        end(how, source());
        relay.restart();
        expect([sources.length, relay.status().topics]).toEqual([1, select === undefined ? 0 : 1]);
        const next = join({ select });
        source().frames('e');
        response.drain();
        clock.pass(16);
        const last = how === 'stops' ? 'connect-again' : 'complete';
        for (const client of [slow, quick])
          expect([client.payloads, client.types.at(-1), client.isComplete]).toEqual([['a', 'b', 'c', 'd'], last, true]);
        expect([next.payloads, next.isComplete]).toEqual([['e'], false]);
        slow.leave();
        quick.leave();
        // A topic also stores `opened`.
        const storedFirst = select === undefined ? 1 : 2;
        expect(relay.status().stored.events).toBe(storedFirst);
        const later = join({ select });
        source().frames('f');
        clock.pass(16);
        expect([later.payloads, next.payloads]).toEqual([['f'], ['e', 'f']]);
        expect(relay.status().stored.events).toBe(storedFirst + 1);
      }
    },
  );

  it.each([undefined, whole])('may be called while the stop is reported (select: %s)', (select) => {
    const { clock, sources, source, relay, join } = restartable();
    const reports: string[] = [];
    relay.events$.subscribe(({ type }) => {
      if (!type.endsWith('-stopped')) return;
      reports.push(type);
      relay.restart();
    });
    const client = join({ select });
    source().frames('a');
    source().subject.error(replaced);
    clock.pass(16);
    expect([client.payloads, client.types.at(-1), reports]).toEqual([['a'], 'connect-again', ['source-stopped']]);
    const next = join({ select, lastEventId: client.lastEventId });
    source().emit(frame('b', clock.now + 1));
    clock.pass(16);
    expect([sources.length, next.payloads, next.isComplete]).toEqual([2, ['b'], false]);
  });
});

it('a relay never sends any part of the key or of a ticket', async () => {
  const wire = await startWire({
    ticket: [issue(), refuse(429, { 'retry-after': '0' }, `{"key":"${plantedKey}"}`), issue()],
    handshake: [
      accept(text('one'), close(4003, 'access expired')),
      refuseHandshake(503, {}, 'planted-ticket-3'),
      accept(text('two'), close(4001, 'connection replaced')),
    ],
  });
  atEnd(() => wire[Symbol.asyncDispose]());
  const { relay, web } = await serveFeed(tradeFeedEvents$('market', optionsFor(wire)), { lingerMs: 0 });
  const log: string[] = [];
  relay.events$.subscribe((event) => log.push(inspect(event, { depth: 9 })));
  const raw = await Raw.get(web.port);
  await raw.until((all) => all.includes('event: connect-again'));
  const codes = ['access-expired', 'ticket-rate-limited', 'capacity-full', 'connection-replaced'];
  for (const part of ['"data":"one"', '"data":"two"', ...codes]) expect(raw.text).toContain(part);
  expect(wire.handshakes.length).toBe(3);
  for (const seen of [raw.text, log.join(), inspect(relay, { depth: 9, showHidden: true })]) {
    expect(seen).not.toMatch(/planted-/);
    expect(seen).not.toMatch(/bearer|x-api-key|authorization/i);
    expect(seen).not.toContain(wire.wssUrl);
  }
  // A client that joins after the stop.
  const late = await receive(web.url, { maxFeedStops: 1 }).over();
  expect(inspect(late.error, { depth: 9, showHidden: true })).not.toMatch(/planted-/);
});

describe('a page of a relay over a log', () => {
  const folder = tempFolder();
  let count = 0;

  /** A growing log, and its payloads as counted from outside. */
  class Growing {
    readonly log = feedLog(folder.path(`log-${(count += 1)}`), { syncMs: Infinity });
    readonly payloads: string[] = [];
    readonly #source = new Subject<unknown>();

    constructor() {
      const writer = this.#source.pipe(this.log.append()).subscribe();
      atEnd(() => writer.unsubscribe());
      this.#source.next(opened(Date.now()));
    }

    add(frames: number): void {
      for (let n = 0; n < frames; n += 1) {
        this.payloads.push(String(this.payloads.length));
        this.#source.next(frame(this.payloads.length - 1, Date.now()));
      }
    }
  }

  const has = (page: Receiver, frames: number) => waitFor(() => page.frames.length >= frames);
  const gapsIn = ({ events }: Receiver) => events.filter(({ type }) => type === 'gap');

  it.each<[string, ReadOptions, RelayOptions]>([
    ['does not read back far enough', { from: { offset: 1 + 5 + 12 } }, {}],
    ['stores too few events', {}, { capacity: 8 }],
  ])('gets a gap with the exact number of frames if the new relay %s', async (_why, read, options) => {
    const growing = new Growing();
    const first = await serveFeed(growing.log.read$(), { lingerMs: Infinity });
    const page = receive(first.web.url, quick);
    await first.hasClients(1);
    growing.add(5);
    await has(page, 5);
    const { port } = first.web;
    first.relay.close();
    await first.web[Symbol.asyncDispose]();
    growing.add(20);
    const { relay } = await serveFeed(growing.log.read$(read), { lingerMs: Infinity, ...options }, {}, port);
    relay.hold();
    await has(page, 5 + 8);
    expect(page.texts).toEqual([...growing.payloads.slice(0, 5), ...growing.payloads.slice(17)]);
    expect(gapsIn(page)).toMatchObject([{ missed: 12, failure: { code: 'relay-behind' } }]);
  });

  it('that is new receives as much of the past as it asks for, without the place that events have in the log', async () => {
    const growing = new Growing();
    growing.add(30);
    const { relay, web } = await serveFeed(
      growing.log.read$(),
      { lingerMs: Infinity },
      { sinceMs: ({ url }) => Number(new URL(url ?? '', 'http://a').searchParams.get('since')) },
    );
    relay.hold();
    await waitFor(() => relay.status().stored.events === 31);
    const [all, none] = [receive(`${web.url}?since=3600000`, quick), receive(web.url, quick)];
    await waitFor(() => relay.status().clients.length === 2);
    growing.add(2);
    await Promise.all([has(all, 32), has(none, 2)]);
    expect(all.texts).toEqual(growing.payloads);
    expect(none.texts).toEqual(growing.payloads.slice(-2));
    expect(gapsIn(all)).toEqual([]);
    for (const event of all.events) expect(event).not.toHaveProperty('offset');
  });
});
