import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { defer, from, type Observable, retry, Subject, timer } from 'rxjs';
import { Frame, tradeFeed$, tradeFeedEvents$ } from '../../src/index.js';
import { feedLog, type ReadOptions } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { createRelay, type RelayOptions, type RelayReceiver } from '../../src/relay/index.js';
import { RelayFullError } from '../../src/relay/refusals.js';
import { startTradeFeedService } from '../../src/testing/index.js';
import { atEnd, quick, receive as receiveFrom, type Receiver, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { gapOf, opened } from '../operators/stream.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import { Client, Clock, essence, frame, range, Raw, Response, Source } from './support.js';

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

  it.each(['stops', 'completes'] as const)('starts without the state of a source that %s', (how) => {
    for (const select of [undefined, whole]) {
      const { clock, source, relay, join } = restartable();
      const begin = clock.now;
      join({ select });
      source().emit(opened(begin), frame('a', begin + 5_000), { type: 'watermark', at: begin + 6_000 });
      end(how, source());
      relay.restart();
      const next = join({ select });
      source().emit(opened(begin + 1, 2), frame('b', begin + 2, 2));
      clock.pass(16);
      expect(next.events).toMatchObject([opened(begin + 1, 2), { type: 'frame', receivedAt: begin + 2 }]);
    }
  });

  it('does not reopen a closed relay', () => {
    const { relay, join, source } = restartable();
    join();
    source().subject.error(replaced);
    relay.close();
    relay.restart();
    expect(join().error).toEqual(expect.any(RelayFullError));
  });

  it('by the `retry` of the source sends the stop to the clients at once as `disconnected`, and keeps them', () => {
    const clock = new Clock();
    const { scheduler } = clock;
    const source = new Source();
    const relay = createRelay(source.events$.pipe(retry({ delay: () => timer(60_000, scheduler) })), { scheduler });
    const client = new Client(relay);
    source.emit(opened(1), { type: 'stopped', at: clock.now, failure: replaced });
    source.subject.error(replaced);
    clock.pass(1_000);
    expect(client.events.map(({ type }) => type)).toEqual(['opened', 'disconnected']);
    expect(client.isComplete).toBe(false);
    relay.close();
  });
});

describe('a relay', () => {
  const folder = tempFolder();

  const serve = (source: Parameters<typeof createRelay>[0], options?: RelayOptions) =>
    serveFeed(source, { lingerMs: 0, ...options });

  // The page stops at the first stop of the feed.
  const receive = (url: string): Receiver => receiveFrom(url, { maxFeedStops: 1 });

  it('sends the frames, the outages with their gaps, and the stop of `tradeFeedEvents$` to many clients over one connection', async () => {
    const service = await startTradeFeedService({ limits: { ticketsPerWindow: 1_000 } });
    atEnd(() => service.shutdown());
    const account = service.createAccount({ plan: 'developer' });
    const options = optionsFor(service, { apiKey: account.createApiKey() });
    const { web } = await serve(tradeFeedEvents$('market', options), { lingerMs: 60_000 });
    const clients = [receive(web.url), receive(web.url), receive(web.url)];
    for (const client of clients) await client.until(({ types }) => types.includes('opened'));
    const sent = range(0, 255).map((byte) => Buffer.of(byte, 0xff));
    for (const data of sent) service.push('market', data);
    for (const client of clients) {
      await client.until((each) => each.frames.length === sent.length);
      expect(client.frames.map(({ data }) => Buffer.from(data))).toEqual(sent);
      expect(client.frames.every(({ isBinary, feed }) => isBinary && feed === 'market')).toBe(true);
    }
    account.expireAccess();
    for (const client of clients) {
      await client.until(({ types }) => types.includes('gap'));
      const tail = client.types.slice(client.types.indexOf('access-expired'));
      expect(tail).toEqual(['access-expired', 'reconnecting', 'ticket-requested', 'ticket-issued', 'opened', 'gap']);
      expect(client.lifecycle.at(-1)).toMatchObject({ failure: { code: 'access-expired' } });
      expect(client.lifecycle.at(-1)).not.toHaveProperty('missed');
    }
    const usurper = tradeFeed$('market', options).subscribe();
    atEnd(() => usurper.unsubscribe());
    for (const client of clients) {
      await client.over();
      expect(client.error).toMatchObject({ code: 'connection-replaced', verdict: 'stop', closeCode: 4001 });
    }
    const late = await receive(web.url).over();
    expect(late.error).toMatchObject({ code: 'connection-replaced' });
    // The relay hasn't taken the connection back.
    expect(usurper.closed).toBe(false);
  });

  it('never sends any part of the key or of a ticket', async () => {
    const wire = await startWire({
      ticket: [issue(), refuse(429, { 'retry-after': '0' }, `{"key":"${plantedKey}"}`), issue()],
      handshake: [
        accept(text('one'), close(4003, 'access expired')),
        refuseHandshake(503, {}, 'planted-ticket-3'),
        accept(text('two'), close(4001, 'connection replaced')),
      ],
    });
    atEnd(() => wire[Symbol.asyncDispose]());
    const { relay, web } = await serve(tradeFeedEvents$('market', optionsFor(wire)));
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
    const late = await receive(web.url).over();
    expect(inspect(late.error, { depth: 9, showHidden: true })).not.toMatch(/planted-/);
  });

  it('sends a log with its gaps and its end', async () => {
    const log = feedLog(folder.path('log'));
    const recorded = [
      frame('a', 1_000),
      gapOf(1_010, 1_020),
      new Frame('raw', Buffer.of(0xff, 0), true, 1_030, 2),
      frame('', 1_040, 2),
    ];
    from(recorded).pipe(log.append()).subscribe();
    const { web } = await serve(log.read$({ follow: false }));
    const client = await receive(web.url).over();
    expect(client.isComplete).toBe(true);
    expect(client.events.map(({ type }) => type)).toEqual(['frame', 'gap', 'frame', 'frame']);
    expect(client.frames.map(essence)).toEqual(
      recorded.flatMap((event) => (event.type === 'frame' ? [essence(event)] : [])),
    );
    expect(client.events[1]).toMatchObject({ from: 1_010, to: 1_020, failure: { code: 'connection-lost' } });
  });
});

describe('a page of a relay over a log', () => {
  const folder = tempFolder();
  let count = 0;

  /** A growing log, and its payloads as counted from outside. */
  class Growing {
    readonly log = feedLog(folder.path(`log-${(count += 1)}`));
    readonly payloads: string[] = [];
    readonly #source = new Subject<unknown>();

    constructor() {
      const writer = this.#source.pipe(this.log.append({ syncMs: Infinity })).subscribe();
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

  /** Starts a relay over a log, on the previous relay's port. */
  const start = ({ log }: Growing, read: ReadOptions = {}, options: RelayOptions = {}, port?: number) =>
    serveFeed(log.read$(read), { lingerMs: Infinity, ...options }, {}, port);
  type Served = Awaited<ReturnType<typeof start>>;

  const stop = async ({ relay, web }: Served): Promise<number> => {
    const { port } = web;
    relay.close();
    await web[Symbol.asyncDispose]();
    return port;
  };

  const has = (page: Receiver, frames: number) => waitFor(() => page.frames.length >= frames);
  const gapsIn = ({ events }: Receiver) => events.filter(({ type }) => type === 'gap');

  /** Starts a relay whose page has the first `count` frames. */
  const startPage = async (growing: Growing, count: number, read?: ReadOptions) => {
    const served = await start(growing, read);
    const page = receiveFrom(served.web.url, quick);
    await served.hasClients(1);
    growing.add(count);
    await has(page, count);
    return { served, page };
  };

  it('continues across restarts of the relay: no gap, no frame lost, none twice', async () => {
    const growing = new Growing();
    const first = await startPage(growing, 5);
    const { page } = first;
    let { served } = first;
    for (let restart = 1; restart <= 3; restart += 1) {
      growing.add(3);
      const port = await stop(served);
      // No relay sends these.
      growing.add(4);
      served = await start(growing, {}, {}, port);
      growing.add(2);
      await has(page, growing.payloads.length);
    }
    expect(page.texts).toEqual(growing.payloads);
    expect(gapsIn(page)).toEqual([]);
  });

  it('continues even if the new relay is still reading the past when the page returns', async () => {
    const growing = new Growing();
    growing.add(5_000);
    const { served, page } = await startPage(growing, 10, { from: { offset: 5_001 } });
    const port = await stop(served);
    growing.add(10);
    // It subscribes once the page is there, and reads the log from the beginning.
    await start(growing, { from: 'earliest' }, {}, port);
    await has(page, 20);
    growing.add(1);
    await has(page, 21);
    expect(page.texts).toEqual(growing.payloads.slice(-21));
    expect(gapsIn(page)).toEqual([]);
  });

  it.each<[string, ReadOptions, RelayOptions]>([
    ['does not read back far enough', { from: { offset: 1 + 5 + 12 } }, {}],
    ['stores too few events', {}, { capacity: 8 }],
  ])('gets a gap with the exact number of frames if the new relay %s', async (_why, read, options) => {
    const growing = new Growing();
    const { served, page } = await startPage(growing, 5);
    const port = await stop(served);
    growing.add(20);
    const { relay } = await start(growing, read, options, port);
    relay.hold();
    await has(page, 5 + 8);
    expect(page.texts).toEqual([...growing.payloads.slice(0, 5), ...growing.payloads.slice(17)]);
    expect(gapsIn(page)).toMatchObject([{ missed: 12, failure: { code: 'relay-behind' } }]);
  });

  it('that is new receives as much of the past as it asks for', async () => {
    const growing = new Growing();
    growing.add(30);
    const { relay, web } = await serveFeed(
      growing.log.read$(),
      { lingerMs: Infinity },
      { sinceMs: ({ url }) => Number(new URL(url ?? '', 'http://a').searchParams.get('since')) },
    );
    relay.hold();
    await waitFor(() => relay.status().stored.events === 31);
    const [all, none] = [receiveFrom(`${web.url}?since=3600000`, quick), receiveFrom(web.url, quick)];
    await waitFor(() => relay.status().clients.length === 2);
    growing.add(2);
    await Promise.all([has(all, 32), has(none, 2)]);
    expect(all.texts).toEqual(growing.payloads);
    expect(none.texts).toEqual(growing.payloads.slice(-2));
    expect(gapsIn(all)).toEqual([]);
  });

  it('receives events without the place that they have in the log', async () => {
    const growing = new Growing();
    const { web } = await start(growing);
    const page = receiveFrom(web.url, quick);
    growing.add(1);
    await has(page, 1);
    for (const event of page.events) expect(Object.keys(event)).not.toContain('offset');
  });
});
