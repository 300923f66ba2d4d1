import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { RelayClient } from '../../src/relay/relay-client.js';
import type { RelayMessage } from '../../src/relay/relay-message.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import { disconnected, gapOf, opened, reconnecting } from '../operators/stream.js';
import { eventsIn, frame, range } from './support.js';
import { cases } from '../support/cases.js';
import type { WireEvent } from './support.js';

const runOf = (bounds: { capacity?: number; capacityBytes?: number; maxReplayBytes?: number } = {}) =>
  new RelayRun({ capacity: 1_000, capacityBytes: 1e6, maxReplayBytes: 1e6, ...bounds }, () => 500);

const clientOf = (run: RelayRun, lastEventId?: string, now = 900) => {
  const behind: number[] = [];
  const client: RelayClient = new RelayClient(
    run,
    lastEventId,
    () => now,
    () => behind.push(client.missed),
  );
  const next = (isFull = () => false): RelayMessage[] => [...client.messages(isFull)];
  return { client, behind, next };
};

const fill = (run: RelayRun, from: number, to: number): void => {
  for (const n of range(from, to)) run.append(frame(n, 500 + n));
};

const eventsOf = (messages: readonly RelayMessage[]): WireEvent[] =>
  messages.filter(({ type }) => type === undefined).flatMap(eventsIn);
const payloads = (messages: readonly RelayMessage[]): unknown[] =>
  eventsOf(messages).flatMap(({ type, data }) => (type === 'frame' ? [Number(data)] : []));
const idOf = (run: RelayRun, { seq, frames = seq, at = 500 }: { seq: number; frames?: number; at?: number }): string =>
  `${run.epoch}.${seq}.${frames}.${at}`;

describe('RelayClient', () => {
  it('sends the time of the relay, then the state of the feed, then new events', () => {
    const run = runOf();
    run.append(opened(510, 3));
    fill(run, 1, 2);
    const { client, next } = clientOf(run);
    const messages = next();
    const id = idOf(run, { seq: 3, frames: 2, at: 510 });
    expect(messages).toEqual([
      { id, type: 'hello', data: '{"at":900}' },
      { id, data: `${JSON.stringify(opened(900, 3))}\n{"type":"watermark","at":510}` },
    ]);
    fill(run, 3, 4);
    expect(payloads(next())).toEqual([3, 4]);
    expect(next()).toEqual([]);
    expect([client.joined, client.sent, client.missed]).toEqual(['new', 2, 0]);
  });

  it('sends only `hello` before the first event', () => {
    expect(
      clientOf(runOf())
        .next()
        .map(({ type }) => type),
    ).toEqual(['hello']);
  });

  it.each<[string, readonly LifecycleEvent[]]>([
    ['waits', [disconnected(520), reconnecting(520, 50)]],
    ['has failed twice', [disconnected(520), reconnecting(520, 50), disconnected(580), reconnecting(580, 90, 2)]],
  ])('sends the state of a feed that %s to a new client', (_what, events) => {
    const run = runOf();
    for (const event of [opened(510), ...events]) run.append(event);
    const types = eventsOf(clientOf(run).next());
    expect(types.at(-1)).toEqual(JSON.parse(JSON.stringify(events.at(-1))));
    expect(types[0]).toMatchObject({ type: 'disconnected', at: 520 });
  });

  it('sends exactly the missed events to a returning client, after an `opened` with the time of its position', () => {
    const run = runOf();
    run.append(opened(500));
    fill(run, 1, 9);
    const { client, next } = clientOf(run, idOf(run, { seq: 5, frames: 4, at: 504 }));
    const messages = next();
    expect(messages[0]).toMatchObject({ type: 'hello', id: idOf(run, { seq: 5, frames: 4, at: 504 }) });
    expect(eventsOf(messages)[0]).toEqual(opened(504));
    expect(payloads(messages)).toEqual([5, 6, 7, 8, 9]);
    expect([client.joined, client.sent, client.missed]).toEqual(['resumed', 5, 0]);
  });

  it('sends a returning client the state at its position when the feed was not open, then the events since', () => {
    const run = runOf();
    const events = [opened(500), disconnected(510), reconnecting(510, 5), opened(520, 2), gapOf(510, 520)];
    for (const event of events) run.append(event);
    const types = eventsOf(clientOf(run, idOf(run, { seq: 3, frames: 0 })).next()).map(({ type }) => type);
    expect(types).toEqual(['disconnected', 'reconnecting', 'opened', 'gap']);
  });

  it.each<[string, (run: RelayRun) => string, number | undefined, number]>([
    ['was removed', (run) => idOf(run, { seq: 2, at: 502 }), 8, 502],
    ['was just removed', (run) => idOf(run, { seq: 9, frames: 9, at: 509 }), 1, 509],
    ['is before the first event', (run) => idOf(run, { seq: 0 }), 10, 500],
    ['is in the log of another run, before all of this one', () => 'otherrun.15.15.505', undefined, 505],
  ])('sends a gap to a client whose position %s, then the stored events', (_what, id, missed, from) => {
    const run = runOf({ capacity: 10 });
    fill(run, 1, 20);
    const { client, next } = clientOf(run, id(run));
    const messages = next();
    const [open, gap] = eventsOf(messages);
    expect([open!.type, gap!.type]).toEqual(['opened', 'gap']);
    expect(gap).toMatchObject({ from, to: 510, durationMs: 510 - from, failure: { code: 'relay-behind' } });
    expect(gap!['missed']).toBe(missed);
    expect([client.joined, client.missed]).toEqual(['behind', missed ?? 0]);
    fill(run, 21, 22);
    expect([...payloads(messages), ...payloads(next())]).toEqual(range(11, 22));
  });

  it.each<[string, (run: RelayRun) => string]>([
    ['is in the future', (run) => idOf(run, { seq: 999, frames: 999, at: 999_999 })],
    ['is in the far future', (run) => `${run.epoch}.9999999999999999.0.9999999999999999`],
  ])('treats a client whose position %s as new', (_what, id) => {
    const run = runOf({ capacity: 10 });
    fill(run, 1, 20);
    const { client, next } = clientOf(run, id(run));
    expect(eventsOf(next()).map(({ type }) => type)).toEqual(['opened']);
    expect([client.joined, client.missed]).toEqual(['new', 0]);
  });

  describe('with a position of another run, before the feed was open,', () => {
    const otherId = 'otherrun.15.15.400';
    const before = [{ type: 'ticket-requested', at: 510, feed: 'market' }] as const;

    it('sends a gap that ends with `opened` and follows it', () => {
      const run = runOf();
      const { next } = clientOf(run, otherId);
      expect(eventsOf(next())).toEqual([]);
      for (const event of [...before, opened(700, 1), frame(1, 710)]) run.append(event);
      const messages = next();
      expect(eventsOf(messages).map(({ type }) => type)).toEqual(['ticket-requested', 'opened', 'gap', 'frame']);
      expect(eventsOf(messages)[2]).toMatchObject({ from: 400, to: 700, durationMs: 300 });
      // The number is unknown.
      expect(eventsOf(messages)[2]).not.toHaveProperty('missed');
      expect(messages.map(({ id }) => id === otherId)).toEqual([true, false, false]);
    });

    it('sends the gap also when the client joins after the first events, and when its connection is lost before `opened`', () => {
      const run = runOf();
      run.append(before[0]);
      const [hello, requested] = clientOf(run, otherId).next();
      expect([hello!.id, requested!.id]).toEqual([otherId, otherId]);
      for (const event of [
        disconnected(520, { stage: 'handshake', code: 'handshake-unreachable', closeCode: undefined }),
        reconnecting(520, 50),
        opened(700, 1),
      ])
        run.append(event);
      expect(eventsOf(clientOf(run, requested!.id).next()).map(({ type }) => type)).toEqual([
        ...['ticket-requested', 'disconnected', 'reconnecting', 'opened', 'gap'],
      ]);
    });

    it('sends the gap before the first frame of a source without lifecycle events', () => {
      const run = runOf();
      const { next } = clientOf(run, otherId);
      next();
      fill(run, 1, 2);
      expect(eventsOf(next()).map(({ type }) => type)).toEqual(['gap', 'frame', 'frame']);
    });
  });

  it('sends that gap on the next connection when this one is lost after `hello`', () => {
    const run = runOf({ capacity: 10 });
    fill(run, 1, 20);
    const id = idOf(run, { seq: 2, at: 502 });
    const [hello, gap] = clientOf(run, id).next();
    expect(hello).toMatchObject({ type: 'hello', id });
    expect(eventsOf(clientOf(run, hello!.id).next())[1]).toMatchObject({ type: 'gap', missed: 8 });
    // After the gap the position is a new one.
    expect(eventsOf(clientOf(run, gap!.id).next()).map(({ type }) => type)[1]).toBe('frame');
  });

  it.each(['', '1', 'e.1', '../../etc', 'a.1.1.1\r\nset-cookie: x=1', '__proto__', '-.-.-.-'])(
    'treats a client with an unreadable id as new: %j',
    (id) => {
      const run = runOf();
      fill(run, 1, 3);
      const { client, next } = clientOf(run, id);
      expect(next().map(({ type }) => type)).toEqual(['hello', undefined]);
      expect(client.joined).toBe('new');
    },
  );

  it('sends one gap with the number of frames to a client that fell out of the log, then the stored events', () => {
    const run = runOf({ capacity: 10 });
    const { client, behind, next } = clientOf(run);
    next();
    fill(run, 1, 4);
    next();
    fill(run, 5, 30);
    const messages = next();
    const [gap, first] = eventsOf(messages);
    expect(gap).toMatchObject({ type: 'gap', from: 504, to: 520, missed: 16, failure: { code: 'relay-behind' } });
    expect(first).toMatchObject({ type: 'frame', data: '21' });
    expect(eventsOf(messages)).toHaveLength(11);
    expect([client.sent, client.missed, behind]).toEqual([14, 16, [16]]);
  });

  it('also sends the state of the feed if it has changed in between', () => {
    const run = runOf({ capacity: 2 });
    const { next } = clientOf(run);
    for (const event of [opened(501), frame(1, 502)]) run.append(event);
    next();
    for (const event of [disconnected(510), opened(520, 2), gapOf(510, 520), frame(2, 521, 2), frame(3, 522, 2)])
      run.append(event);
    expect(eventsOf(next())).toEqual([
      opened(520, 2),
      expect.objectContaining({ type: 'gap', from: 502, to: 520, missed: 0 }),
      expect.objectContaining({ type: 'frame', data: '2' }),
      expect.objectContaining({ type: 'frame', data: '3' }),
    ]);
    for (const event of [frame(4, 523, 2), disconnected(530), reconnecting(530, 5), reconnecting(531, 5)])
      run.append(event);
    expect(eventsOf(next()).map(({ type }) => type)).toEqual(['gap', 'disconnected', 'reconnecting', 'reconnecting']);
  });

  it('stops while the response is full, and continues after that', () => {
    const run = runOf();
    const { next } = clientOf(run);
    expect(next(() => true).map(({ type }) => type)).toEqual(['hello']);
    fill(run, 1, 300);
    for (const n of range(301, 310)) run.append(frame(String(n).padEnd(30_000), 500));
    let calls = 0;
    const some = next(() => (calls += 1) > 2);
    expect(some).toHaveLength(2);
    expect([...payloads(some), ...payloads(next())]).toEqual(range(1, 310));
  });

  it('sends the end of the source after all events', () => {
    const run = runOf();
    const { next } = clientOf(run);
    fill(run, 1, 2);
    run.complete();
    const messages: RelayMessage[] = [];
    for (const message of clientOf(run).client.messages(() => false)) {
      messages.push(message);
      if (message.type === 'complete') break;
    }
    expect(messages.map(({ type }) => type)).toEqual(['hello', undefined, 'complete']);
    expect(next(() => true).at(-1)?.type).not.toBe('complete');
  });

  it('returns a heartbeat that changes no position', () => {
    const run = runOf();
    const { client, next } = clientOf(run);
    fill(run, 1, 2);
    const [, last] = [next(), next()];
    expect(last).toEqual([]);
    expect(client.heartbeat()).toEqual({ id: idOf(run, { seq: 2, at: 502 }), type: 'heartbeat', data: '' });
  });

  it('resumes at each stored position, and sends a gap otherwise: each frame is sent or missed, once', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 200, max: 4_000 }),
        fc.array(fc.record({ frames: fc.nat(30), reads: fc.boolean(), returns: fc.boolean() }), { maxLength: 12 }),
        (capacity, capacityBytes, steps) => {
          const run = runOf({ capacity, capacityBytes });
          let { next } = clientOf(run);
          const seen = next();
          let emitted = 0;
          for (const { frames, reads, returns } of [...steps, { frames: 0, reads: true, returns: true }]) {
            fill(run, emitted + 1, emitted + frames);
            emitted += frames;
            if (returns) ({ next } = clientOf(run, seen.at(-1)!.id));
            if (reads) seen.push(...next());
          }
          // After each gap the numbers continue after the missed ones.
          let expected = 1;
          for (const event of eventsOf(seen)) {
            if (event.type === 'gap') expected += event['missed'] as number;
            if (event.type === 'frame') {
              expect(Number(event['data'])).toBe(expected);
              expected += 1;
            }
          }
          expect(expected - 1).toBe(emitted);
        },
      ),
      { numRuns: cases(300) },
    );
  });
});
