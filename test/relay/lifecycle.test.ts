import { describe, expect, it } from '@jest/globals';
import { defer, type Observable, Subject } from 'rxjs';
import { feedLog, type ReadOptions } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { createRelay, type RelayOptions, type RelayReceiver } from '../../src/relay/index.js';
import { RelayFullError } from '../../src/relay/refusals.js';
import { atEnd, quick, receive as receiveFrom, type Receiver, serveFeed } from '../browser/support.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { opened } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { Client, Clock, frame, Response, Source } from './support.js';

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

  const payloadsOf = ({ frames }: Receiver): string[] => frames.map((each) => each.text());
  const has = (page: Receiver, frames: number) => waitFor(() => page.frames.length >= frames);

  it('continues across restarts of the relay: no gap, no frame lost, none twice', async () => {
    const growing = new Growing();
    let served = await start(growing);
    served.relay.hold();
    const page = receiveFrom(served.web.url, quick);
    await served.hasClients(1);
    growing.add(5);
    await has(page, 5);
    for (let restart = 1; restart <= 3; restart += 1) {
      growing.add(3);
      const port = await stop(served);
      // No relay sends these.
      growing.add(4);
      served = await start(growing, {}, {}, port);
      growing.add(2);
      await has(page, growing.payloads.length);
    }
    // Without the place that they have in the log.
    for (const event of page.events) expect(event).not.toHaveProperty('offset');
    expect(payloadsOf(page)).toEqual(growing.payloads);
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it('continues even if the new relay is still reading the past when the page returns', async () => {
    const growing = new Growing();
    growing.add(5_000);
    const first = await start(growing, { from: { offset: 5_001 } });
    const page = receiveFrom(first.web.url, quick);
    await first.hasClients(1);
    growing.add(10);
    await has(page, 10);
    const port = await stop(first);
    growing.add(10);
    // It subscribes once the page is there, and reads the log from the beginning.
    await start(growing, { from: 'earliest' }, {}, port);
    await has(page, 20);
    growing.add(1);
    await has(page, 21);
    expect(payloadsOf(page)).toEqual(growing.payloads.slice(-21));
    expect(page.events.filter(({ type }) => type === 'gap')).toEqual([]);
  });

  it.each<[string, ReadOptions, RelayOptions]>([
    ['does not read back far enough', { from: { offset: 1 + 5 + 12 } }, {}],
    ['stores too few events', {}, { capacity: 8 }],
  ])('gets a gap with the exact number of frames if the new relay %s', async (_how, read, options) => {
    const growing = new Growing();
    const first = await start(growing);
    const page = receiveFrom(first.web.url, quick);
    await first.hasClients(1);
    growing.add(5);
    await has(page, 5);
    const port = await stop(first);
    growing.add(20);
    const second = await start(growing, read, options, port);
    second.relay.hold();
    await has(page, 5 + 8);
    expect(payloadsOf(page)).toEqual([...growing.payloads.slice(0, 5), ...growing.payloads.slice(17)]);
    expect(page.events.filter(({ type }) => type === 'gap')).toMatchObject([
      { missed: 12, failure: { code: 'relay-behind' } },
    ]);
  });
});
