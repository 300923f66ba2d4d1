import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { NEVER, type SchedulerLike } from 'rxjs';
import { timeOf } from '../../src/operators/items/item.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { RelayClient } from '../../src/relay/relay-client.js';
import { type RelayMessage, sseText } from '../../src/relay/relay-message.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import { ReplaySlots } from '../../src/relay/hub.js';
import { turnsOf } from '../../src/relay/turns.js';
import { disconnected, gapOf, joined, opened, opening, reconnecting } from '../operators/stream.js';
import { cases, isAllCases } from '../support/cases.js';
import { eventsIn, frame, inOrder, isFrame, range, timeIn, watermarkIn, type WireEvent } from './support.js';

const begin = 1_000_000;

/** One run of a relay, with a clock set by the test. */
class Replica {
  now = begin;
  readonly run: RelayRun;
  received = 0;
  readonly #scheduler = { now: () => this.now } as SchedulerLike;

  constructor(bounds: { capacity?: number; capacityBytes?: number; maxReplayBytes?: number } = {}) {
    const room = { capacity: 10_000, capacityBytes: 1e8, maxReplayBytes: 1e8 };
    this.run = new RelayRun({ ...room, ...bounds, scheduler: this.#scheduler });
  }

  take(...events: readonly RelayedEvent[]): this {
    for (const event of events) this.run.append(event);
    return this;
  }

  /** Receives frames with these numbers, one per ms. */
  frames(from: number, to: number): this {
    return this.take(...framesOf(range(from, to)));
  }

  join(lastEventId?: string, sinceMs?: number) {
    /** Missed frames in each report that the client is behind. */
    const behind: number[] = [];
    const hub = {
      ...{
        joined: 0,
        home: undefined,
        scheduler: this.#scheduler,
        turns: turnsOf(this.#scheduler),
        replays: new ReplaySlots({ maxReplays: 8 }),
        heartbeats$: NEVER,
        watermarks$: NEVER,
        tooOld$: NEVER,
      },
      report: (event: object) => behind.push((event as { missed: number }).missed),
    };
    const client = new RelayClient(this.run, hub, { lastEventId, sinceMs }, undefined);
    const next = (isFull = () => false): RelayMessage[] => {
      const sent: RelayMessage[] = [];
      client.send({
        isOver: false,
        get isFull() {
          return isFull();
        },
        send: (message) => void sent.push(message),
        write: (block) => void sent.push(block.messageOf(undefined)),
      });
      return sent;
    };
    return { client, behind, next, read: () => [...next(), ...[client.watermark() ?? []].flat()] };
  }

  /** All events for a client that joins with an id. */
  eventsFor(lastEventId: string): WireEvent[] {
    return eventsOf(this.join(lastEventId).read());
  }

  /** The id of a position in this log. */
  id(offset: number, frames = offset, at = begin + frames): string {
    return `l${this.run.log.line}-0.${offset}.${frames}.${at}`;
  }
}

const isBatch = ({ type }: { readonly type?: string }): boolean => type === undefined;
const eventsOf = (messages: readonly RelayMessage[]): WireEvent[] => messages.filter(isBatch).flatMap(eventsIn);
const typesOf = (events: readonly WireEvent[]): string[] => events.map(({ type }) => type);
const numbersOf = (events: readonly WireEvent[]): number[] =>
  events.flatMap(({ type, data }) => (type === 'frame' ? [Number(data)] : []));
const framesOf = (numbers: readonly number[], time = (n: number) => begin + n): RelayedEvent[] =>
  numbers.map((n) => frame(n, time(n)));
const elsewhere = (at: number): string => `l_other-0.7.5.${at}`;

describe('a client of a run', () => {
  it('has ids that are no positions of a cluster', () => {
    for (const { line } of range(1, 500).map(() => new Replica().run.log)) expect(line).toMatch(/^_[\da-f]{12}$/);
  });

  it('receives the time of the relay, then the state of the feed, then new events', () => {
    const replica = new Replica().take(opened(begin, 3)).frames(1, 2);
    const { client, next } = replica.join();
    const id = replica.id(3, 2);
    expect(client.watermark()).toBeUndefined();
    expect(next()).toEqual([
      { id, type: 'hello', data: `{"at":${begin}}` },
      { id, data: `${JSON.stringify(joined(begin + 2, 3))}\n{"type":"watermark","at":${begin + 2}}` },
    ]);
    replica.frames(3, 4);
    expect(numbersOf(eventsOf(next()))).toEqual([3, 4]);
    expect(next()).toEqual([]);
    expect(client).toMatchObject({ number: 1, since: begin, joined: 'new', sent: 2, missed: 0 });
    expect(client.heartbeat()).toEqual({ id: replica.id(5, 4), type: 'heartbeat', data: '' });
  });

  it.each([
    [3, 1e8, range(7, 9)],
    [100, 1e8, range(1, 9)],
    [100, 1, []],
  ])('receives the last %d ms if it asks for them, of %d bytes at most', (sinceMs, maxReplayBytes, numbers) => {
    const replica = new Replica({ maxReplayBytes }).take(opened(begin)).frames(1, 9);
    const received = eventsOf(replica.join(undefined, sinceMs).next());
    expect(numbersOf(received)).toEqual(numbers);
  });

  it('receives exactly the missed events when it returns, after an `opened` at its position and not before its time', () => {
    const replica = new Replica().take(opened(begin)).frames(1, 9);
    for (const [id, at] of [
      [replica.id(5, 4), begin + 4],
      [replica.id(5, 4, begin + 7), begin + 7],
    ] as const) {
      const { client, next } = replica.join(id);
      const messages = next();
      expect(messages[0]).toMatchObject({ type: 'hello', id });
      expect(eventsOf(messages)[0]).toEqual(opened(at));
      expect(numbersOf(eventsOf(messages))).toEqual(range(5, 9));
      expect(client).toMatchObject({ joined: 'resumed', sent: 5, missed: 0 });
    }
  });

  it.each<[string, (replica: Replica) => string, number | undefined, number]>([
    ['was removed', (replica) => replica.id(2), 8, 2],
    ['was just removed', (replica) => replica.id(9), 1, 9],
    ['is before the first event', (replica) => replica.id(0), 10, 0],
    ['is in the log of another run, before all of this one', () => elsewhere(begin + 5), undefined, 5],
  ])('receives a gap when its position %s, then the stored events', (_what, id, missed, from) => {
    const replica = new Replica({ capacity: 10 }).frames(1, 20);
    const { client, next } = replica.join(id(replica));
    const first = eventsOf(next());
    expect(typesOf(first.slice(0, 2))).toEqual(['opened', 'gap']);
    expect(first[1]).toMatchObject({ from: begin + from, to: begin + 10, failure: { code: 'relay-behind' } });
    expect(first[1]!['missed']).toBe(missed);
    expect([client.joined, client.missed]).toEqual(['behind', missed ?? 0]);
    replica.frames(21, 22);
    expect(numbersOf([...first, ...eventsOf(next())])).toEqual(range(11, 22));
  });

  it.each([
    ['that is ahead of the log', '999.999.1999999'],
    ['that is far ahead of the log', '9999999999999999.0.9999999999999999'],
    ['that nobody can read', '../../etc'],
    ['with a line break', '1.1.1\r\nset-cookie: x=1'],
  ])('is new with an id %s', (_what, id) => {
    const replica = new Replica().frames(1, 20);
    for (const each of [`l${replica.run.log.line}-0.${id}`, '', '__proto__', '-.-.-.-']) {
      const { client, next } = replica.join(each);
      expect([typesOf(eventsOf(next())), client.joined, client.missed]).toEqual([['opened'], 'new', 0]);
    }
  });

  it('receives one gap with the number of frames when it falls out of the log, and the new state of the feed', () => {
    const replica = new Replica({ capacity: 10 });
    const { client, behind, next } = replica.join();
    next();
    replica.frames(1, 4);
    next();
    replica.frames(5, 30);
    const received = eventsOf(next());
    expect(received[0]).toMatchObject({ type: 'gap', from: begin + 4, to: begin + 20, missed: 16 });
    expect(numbersOf(received)).toEqual(range(21, 30));
    replica.take(disconnected(begin + 40), opened(begin + 50, 2), gapOf(begin + 40, begin + 50)).frames(51, 70);
    expect(eventsOf(next()).slice(0, 2)).toEqual([
      joined(begin + 60, 2),
      expect.objectContaining({ type: 'gap', from: begin + 30, to: begin + 60, missed: 10 }),
    ]);
    replica.take(...range(71, 80).map((n) => reconnecting(begin + n, 1)));
    replica.take(disconnected(begin + 90));
    expect(typesOf(eventsOf(next())).slice(0, 3)).toEqual(['gap', 'reconnecting', 'reconnecting']);
    expect([client.sent, client.missed, behind]).toEqual([24, 26, [16, 26, 26]]);
  });

  it('is reported as behind once, until it has caught up', () => {
    const replica = new Replica({ capacity: 2 });
    const { behind, next } = replica.join();
    next();
    const readOne = () => {
      let calls = 0;
      return next(() => (calls += 1) > 1);
    };
    for (const from of [1, 11]) {
      replica.frames(from, from + 9);
      expect(typesOf(eventsOf(readOne())).at(-1)).toBe('gap');
    }
    expect(behind).toHaveLength(1);
    next();
    replica.frames(21, 30);
    next();
    expect(behind).toHaveLength(2);
  });

  it('receives `stopped` as `disconnected`, with the same time and the public failure', () => {
    const failure = createTradeFeedError({ stage: 'ticket', status: 401, cause: new Error('secret') });
    const replica = new Replica().take(opened(begin), { type: 'stopped', at: begin + 8, failure });
    const [event] = eventsOf(replica.join(replica.id(1, 0)).next()).slice(-1);
    const received = JSON.parse(JSON.stringify(failure.toPublic())) as object;
    expect(event).toEqual({ type: 'disconnected', at: begin + 8, failure: received });
  });
});

describe('a client of another relay, before the feed was open,', () => {
  const id = `l_other-0.15.15.${begin - 100}`;
  const requested = { type: 'ticket-requested', at: begin + 10, feed: 'market' } as const;

  it('receives a gap that ends with `opened` and follows it', () => {
    const replica = new Replica();
    const { next } = replica.join(id);
    expect(eventsOf(next())).toEqual([]);
    replica.take(requested, opened(begin + 200), frame(1, begin + 210));
    const messages = next();
    const received = eventsOf(messages);
    expect(typesOf(received)).toEqual(['ticket-requested', 'opened', 'gap', 'frame']);
    expect(received[2]).toMatchObject({ from: begin - 100, to: begin + 200, durationMs: 300 });
    expect(received[2]).not.toHaveProperty('missed');
    // `ticket-requested` has moved the time, but the gap still begins where the client was.
    expect(messages[0]!.id).toBe(`l-0.0.0.${begin + 9}.${begin - 100}`);
    expect(messages.at(-1)!.id).toBe(replica.id(3, 1, begin + 210));
  });

  it('receives the gap with the first watermark after the first connection is complete, while the feed is quiet', () => {
    const replica = new Replica();
    replica.now = begin + 200;
    replica.take(opening(begin + 200));
    const { client, next } = replica.join(id);
    expect(typesOf(eventsOf(next()))).toEqual(['opened']);
    replica.now = begin + 650;
    const before = client.watermark()!;
    expect([eventsIn(before), watermarkIn(before)]).toEqual([[], begin + 650]);
    replica.now = begin + 900;
    const after = client.watermark()!;
    expect(eventsIn(after)).toMatchObject([{ type: 'gap', from: begin - 100, to: begin + 700 }]);
    expect(watermarkIn(after)).toBe(begin + 900);
    replica.take(frame(1, begin + 950));
    expect(typesOf(eventsOf(next()))).toEqual(['frame']);
  });

  it('receives a gap before the first frame and one after a fixed time, and no frame twice if it loses its connection in between', () => {
    const fixed = { ...opened(begin + 200), completeFrom: begin + 1_200 };
    const replica = new Replica().take(fixed, frame(1, begin + 290), frame(2, begin + 300));
    const messages = replica.join(id).next();
    expect(typesOf(eventsOf(messages))).toEqual(['opened', 'gap', 'frame', 'frame']);
    expect(eventsOf(messages)[1]).toMatchObject({ from: begin - 100, to: begin + 290 });
    const lastId = messages.at(-1)!.id;
    expect(lastId).toBe(`l-0.0.0.${begin + 300}.${begin + 290}`);
    replica.take(frame(3, begin + 310), frame(4, begin + 1_210));
    const events = replica.eventsFor(lastId);
    expect(numbersOf(events)).toEqual([3, 4]);
    const gaps = events.filter(({ type }) => type === 'gap');
    expect(gaps.at(0)).toMatchObject({ from: begin + 290 });
    expect(gaps.at(-1)).toMatchObject({ to: begin + 1_200 });
  });
});

describe('a client of another relay', () => {
  it('resumes after the time in its id, with a gap, and receives no frame twice', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 20)));
    const received = replica.eventsFor(elsewhere(begin + 12));
    expect(typesOf(received.slice(0, 2))).toEqual(['opened', 'gap']);
    expect(received[1]).toMatchObject({ from: begin + 12, to: begin + 13, failure: { code: 'relay-behind' } });
    expect(received[1]).not.toHaveProperty('missed');
    expect(numbersOf(received)).toEqual(range(13, 20));
  });

  it('receives a current outage with no time before its own, and with the same time of the next attempt', () => {
    const replica = new Replica().take(opened(begin), ...framesOf([1]));
    replica.take(disconnected(begin + 5), reconnecting(begin + 6, 1_000));
    const received = replica.eventsFor(elsewhere(begin + 100));
    expect(typesOf(received)).toEqual(['gap', 'disconnected', 'reconnecting']);
    expect(received.map(timeIn)).toEqual([begin + 101, begin + 101, begin + 101]);
    expect(received[2]).toMatchObject({ delayMs: 905 });
    expect(received[1]).toMatchObject({ failure: { endedAt: begin + 5 } });
  });

  it.each<[string, (replica: Replica) => Replica]>([
    ['moves to a relay that has them', (replica) => replica.take(opened(begin)).frames(1, 60)],
    ['returns to its relay, which has restarted', (replica) => replica.take(opened(begin + 50)).frames(51, 60)],
  ])('receives the frames of an outage in one gap, which begins with the outage, when it %s', (_how, start) => {
    const [before, after] = [new Replica().take(opened(begin)), new Replica()];
    const page = before.join();
    before.now = begin + 10;
    before.frames(1, 10).take(disconnected(begin + 10), reconnecting(begin + 10, 1));
    before.now = begin + 55;
    const messages = page.read();
    after.now = begin + 60;
    const moved = start(after).join(messages.at(-1)!.id);
    messages.push(...moved.read());
    after.frames(61, 63);
    const received = eventsOf([...messages, ...moved.read()]);
    expect(received.filter(({ type }) => type === 'gap')).toMatchObject([{ from: begin + 10, to: begin + 56 }]);
    expect(numbersOf(received)).toEqual([...range(1, 10), ...range(56, 63)]);
  });

  it('receives no event twice from a relay that lags: frames up to its time become a gap', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 5)));
    const { read } = replica.join(elsewhere(begin + 8));
    const first = eventsOf(read());
    expect(first).toEqual([
      joined(begin + 9),
      expect.objectContaining({ type: 'gap', from: begin + 8, to: begin + 9 }),
    ]);
    replica.take(...framesOf(range(6, 7)));
    const second = read();
    expect(second.flatMap(eventsIn)).toEqual([
      expect.objectContaining({ type: 'gap', from: begin + 6, to: begin + 9 }),
    ]);
    // The id makes any relay, this one included, skip them as well.
    expect(second.at(-1)!.id).toBe(`l-0.0.0.${begin + 8}`);
    const again = replica.join(second.at(-1)!.id);
    expect(again.client.joined).toBe('behind');
    again.read();
    replica.take(...framesOf(range(8, 10)));
    expect([read(), again.read()].map((messages) => numbersOf(messages.flatMap(eventsIn)))).toEqual([
      [9, 10],
      [9, 10],
    ]);
  });

  it('receives the state of a relay that lags after the gap for its frames, if the feed has connected again', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 5)));
    const { read } = replica.join(elsewhere(begin + 8));
    read();
    replica.take(frame(6, begin + 6), disconnected(begin + 6), reconnecting(begin + 6, 1), opened(begin + 7, 2));
    expect(read().flatMap(eventsIn)).toEqual([
      joined(begin + 9, 2),
      expect.objectContaining({ type: 'gap', from: begin + 6, to: begin + 9 }),
    ]);
  });

  it.each([
    ['a minute', begin + 60_000],
    ['thousands of years', 9_000_000_000_000_000],
  ])('receives new events from now on when its time is %s ahead', (_what, at) => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 5)));
    const { read } = replica.join(elsewhere(at));
    const first = eventsOf(read());
    expect(first).toEqual([
      joined(begin + 5),
      expect.objectContaining({ type: 'gap', from: begin + 5, to: begin + 5, durationMs: 0 }),
    ]);
    replica.take(...framesOf(range(6, 7)));
    expect(numbersOf(read().flatMap(eventsIn))).toEqual([6, 7]);
  });
});

describe('maxReplayBytes', () => {
  const lines = (count: number) => framesOf(range(1, count), (n) => begin + n);
  const sentTo = (replica: Replica, id: string): number =>
    replica
      .join(id)
      .read()
      .filter(isBatch)
      .reduce((sum, message) => sum + Buffer.byteLength(sseText(message)), 0);

  it('limits the replay for any `Last-Event-ID`', () => {
    const replica = new Replica({ maxReplayBytes: 2_000 }).take(opened(begin), ...lines(500));
    const number = fc.oneof(
      fc.nat(600),
      fc.constantFrom(0, 1, begin - 1, begin + 100, 10 ** 15, 9_000_000_000_000_000),
    );
    const line = fc.constantFrom('mine', '_other', 'x', '', '-', '_');
    fc.assert(
      fc.property(line, number, number, number, (word, offset, frames, at) => {
        const id = `l${word === 'mine' ? replica.run.log.line : word}-0.${offset}.${frames}.${at}`;
        // The lines of the log, `data: ` before each, and `opened` with its gap.
        expect(sentTo(replica, id)).toBeLessThan(2_000 * 1.2 + 1_000);
      }),
      { numRuns: cases(100) },
    );
  });
});

/** What a page does: it reads, or joins a replica with its last id. */
const moves = fc.array(
  fc.record({
    events: fc.nat(12),
    lag: fc.nat(6),
    to: fc.option(fc.nat(1), { nil: undefined }),
    reads: fc.boolean(),
  }),
  { minLength: 1, maxLength: 14 },
);

/** A feed of numbered frames with outages, whose times never decrease. */
const timeline = fc
  .array(fc.record({ after: fc.nat(40), kind: fc.constantFrom('frame', 'frame', 'frame', 'frame', 'outage') }), {
    minLength: 30,
    maxLength: 70,
  })
  .map((steps) => {
    let at = begin + 1;
    let n = 0;
    return steps.flatMap(({ after, kind }): RelayedEvent[] => {
      at += after;
      if (kind === 'frame') return [frame((n += 1), at)];
      const down = at;
      at += 3;
      return [disconnected(down), reconnecting(down, 1), opened(at, 2), gapOf(down, at)];
    });
  });

const clocks = fc.tuple(fc.integer({ min: -5_000, max: 5_000 }), fc.integer({ min: -5_000, max: 5_000 }));

describe('a page that switches between relays', () => {
  /** Switches a page between two relays, and returns all messages that it received. */
  const switchBetween = (
    sources: readonly [readonly RelayedEvent[], readonly RelayedEvent[]],
    steps: readonly { events: number; lag: number; to: number | undefined; reads: boolean }[],
    [one, other]: readonly [number, number],
  ) => {
    const replicas = [new Replica(), new Replica()] as const;
    replicas[0].now += one;
    replicas[1].now += other;
    for (const replica of replicas) replica.take(opened(begin));
    let emitted = 0;
    const feed = (index: 0 | 1, upTo: number): void => {
      const replica = replicas[index];
      for (; replica.received < Math.min(upTo, sources[index].length); replica.received += 1) {
        const event = sources[index][replica.received]!;
        replica.now = timeOf(event)! + (index === 0 ? one : other);
        replica.take(event);
      }
    };
    let page = replicas[0].join();
    const first = page.read();
    const messages = [...first];
    for (const { events, lag, to, reads } of [...steps, { events: 200, lag: 0, to: undefined, reads: true }]) {
      emitted += events;
      feed(0, emitted);
      feed(1, emitted - lag);
      if (to !== undefined) page = replicas[to === 0 ? 0 : 1].join(messages.at(-1)!.id);
      if (reads) messages.push(...page.read());
    }
    return messages.slice(first.length).filter(({ type }) => type === undefined);
  };

  it('receives each frame once, times never decrease, and a gap covers each missing frame and each change of the source', () => {
    fc.assert(
      fc.property(timeline, fc.option(timeline, { freq: 1 }), moves, clocks, (source, two, steps, differences) => {
        const other = two?.map((each) => (each.type === 'frame' ? frame(`1000${each.text()}`, each.receivedAt) : each));
        const received = switchBetween([source, other ?? source], steps, differences).flatMap(eventsIn);
        const numbers = numbersOf(received);
        expect(new Set(numbers).size).toBe(numbers.length);
        inOrder(received.map(timeIn));
        // Frames of two sources always have a gap between them.
        const order = received.flatMap((event) =>
          event.type === 'gap' ? '|' : numbersOf([event]).map((n) => (n < 1e4 ? 'a' : 'b')),
        );
        expect(order.join('')).not.toMatch(/ab|ba/);
        if (other !== undefined) return;
        inOrder(numbers);
        const gaps = received.filter(({ type }) => type === 'gap') as unknown as { from: number; to: number }[];
        // A lagging relay will still send the frames after the last one.
        const last = timeIn(received.at(-1)!);
        const lost = source
          .filter(isFrame)
          .filter((each) => each.receivedAt <= last && !numbers.includes(Number(each.text())));
        expect(lost.filter(({ receivedAt: at }) => !gaps.some(({ from, to }) => from <= at && at <= to))).toEqual([]);
      }),
      { numRuns: isAllCases ? 400 : 20 },
    );
  }, 60_000);

  it.each<[string, readonly RelayedEvent[]]>([
    ['the feed is open all the time', framesOf(range(1_100, 1_105))],
    [
      'the feed was down in between',
      [
        ...framesOf([1, 2]),
        disconnected(begin + 1_050),
        reconnecting(begin + 1_050, 1),
        opened(begin + 1_100, 2),
        ...framesOf([1_101, 1_102]),
      ],
    ],
  ])('receives times that never decrease when it falls out of the log of a late relay: %s', (_how, events) => {
    const replica = new Replica({ capacity: 3 }).take(opened(begin));
    const { read, client } = replica.join(elsewhere(begin + 3_000));
    const messages = read();
    replica.take(...events);
    messages.push(...read());
    expect(client.missed).toBeGreaterThan(0);
    replica.take(...framesOf(range(2_998, 3_002)));
    messages.push(...read());
    const batches = messages.filter(isBatch);
    const received = batches.flatMap(eventsIn);
    inOrder(received.map(timeIn));
    inOrder(batches.map((message) => watermarkIn(message) as number));
    expect(received.map(timeIn).every((at) => at >= begin + 3_000)).toBe(true);
    expect(numbersOf(received)).toEqual([3_001, 3_002]);
    // One at the start, and one each time the client falls out of the log.
    expect(typesOf(received).filter((type) => type === 'gap')).toHaveLength(3);
    expect(messages.at(-1)!.id).toMatch(new RegExp(`\\.${begin + 3_002}$`));
  });
});
