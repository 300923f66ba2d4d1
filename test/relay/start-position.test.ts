import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { frameLine } from '../../src/operators/node/recording/recording-line.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { RelayClient } from '../../src/relay/relay-client.js';
import { sseText } from '../../src/relay/relay-message.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import { disconnected, gapOf, opened, reconnecting } from '../operators/stream.js';
import { eventsIn, frame, isFrame, range, watermarkIn } from './support.js';
import { cases } from '../support/cases.js';
import type { WireEvent } from './support.js';

const begin = 1_000_000;

/** One run of a relay, with a clock that the test sets. */
class Replica {
  now = begin;
  readonly run: RelayRun;
  received = 0;

  constructor(bounds: { capacity?: number; maxReplayBytes?: number } = {}) {
    const room = { capacity: 10_000, capacityBytes: 1e8, maxReplayBytes: 1e8 };
    this.run = new RelayRun({ ...room, ...bounds }, () => this.now);
  }

  take(...events: readonly RelayedEvent[]): this {
    for (const event of events) this.run.append(event);
    return this;
  }

  join(lastEventId?: string) {
    const client = new RelayClient(
      this.run,
      lastEventId,
      () => this.now,
      () => undefined,
    );
    return { client, read: () => [...client.messages(() => false), ...client.watermark()] };
  }

  /** All events for a client that joins with an id. */
  eventsFor(lastEventId: string): WireEvent[] {
    return this.join(lastEventId).read().filter(isBatch).flatMap(eventsIn);
  }
}

const isBatch = ({ type }: { readonly type?: string }): boolean => type === undefined;
const typesOf = (events: readonly WireEvent[]): string[] => events.map(({ type }) => type);
const timeIn = (event: WireEvent): number => (event['receivedAt'] ?? event['to'] ?? event['at']) as number;
const numbersOf = (events: readonly WireEvent[]): number[] =>
  events.flatMap(({ type, data }) => (type === 'frame' ? [Number(data)] : []));
const framesOf = (numbers: readonly number[], time = (n: number) => begin + n): RelayedEvent[] =>
  numbers.map((n) => frame(n, time(n)));
const elsewhere = (at: number): string => `otherrun.7.5.${at}`;

describe('a client of another relay', () => {
  it('resumes after the time in its id, with a gap, and receives no frame twice', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 20)));
    const received = replica.eventsFor(elsewhere(begin + 12));
    expect(typesOf(received.slice(0, 2))).toEqual(['opened', 'gap']);
    expect(received[1]).toMatchObject({ from: begin + 12, to: begin + 12, failure: { code: 'relay-behind' } });
    expect(received[1]).not.toHaveProperty('missed');
    expect(numbersOf(received)).toEqual(range(13, 20));
  });

  it('does not receive the frames of the same millisecond, because it may have them', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 9), (n) => begin + Math.ceil(n / 3)));
    expect(numbersOf(replica.eventsFor(elsewhere(begin + 2)))).toEqual([7, 8, 9]);
  });

  it('receives the whole log after a gap when all stored events are later', () => {
    const replica = new Replica({ capacity: 5 }).take(opened(begin), ...framesOf(range(1, 20)));
    const received = replica.eventsFor(elsewhere(begin - 500));
    expect(received[1]).toMatchObject({ type: 'gap', from: begin - 500, to: begin + 15 });
    expect(numbersOf(received)).toEqual(range(16, 20));
  });

  it('receives a current outage with no time before its own, and with the same time of the next attempt', () => {
    const replica = new Replica().take(opened(begin), ...framesOf([1]));
    replica.take(disconnected(begin + 5), reconnecting(begin + 6, 1_000));
    const received = replica.eventsFor(elsewhere(begin + 100));
    expect(typesOf(received)).toEqual(['gap', 'disconnected', 'reconnecting']);
    expect(received.map(timeIn)).toEqual([begin + 100, begin + 100, begin + 100]);
    expect(received[2]).toMatchObject({ delayMs: 906 });
    expect(received[1]).toMatchObject({ failure: { endedAt: begin + 5 } });
  });

  it('receives no event twice from a relay that is later: frames up to its time become a gap', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 5)));
    const { read } = replica.join(elsewhere(begin + 8));
    const first = read().filter(isBatch).flatMap(eventsIn);
    expect(first).toEqual([
      opened(begin + 8),
      expect.objectContaining({ type: 'gap', from: begin + 8, to: begin + 8 }),
    ]);
    replica.take(...framesOf(range(6, 7)));
    const second = read();
    expect(second.flatMap(eventsIn)).toEqual([
      expect.objectContaining({ type: 'gap', from: begin + 6, to: begin + 8 }),
    ]);
    // The id makes another relay, or this one, skip them too.
    expect(second.at(-1)!.id).toMatch(new RegExp(`\\.${begin + 9}$`));
    const again = replica.join(second.at(-1)!.id);
    expect(again.client.joined).toBe('resumed');
    again.read();
    replica.take(...framesOf(range(8, 10)));
    expect([read(), again.read()].map((messages) => numbersOf(messages.flatMap(eventsIn)))).toEqual([
      [9, 10],
      [9, 10],
    ]);
  });

  it.each([
    ['a minute', begin + 60_000],
    ['thousands of years', 9_000_000_000_000_000],
  ])('receives new events from now on when its time is %s ahead', (_what, at) => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 5)));
    const { read } = replica.join(elsewhere(at));
    const first = read().filter(isBatch).flatMap(eventsIn);
    expect(first).toEqual([
      opened(begin + 5),
      expect.objectContaining({ type: 'gap', from: begin + 5, to: begin + 5, durationMs: 0 }),
    ]);
    replica.take(...framesOf(range(6, 7)));
    expect(numbersOf(read().flatMap(eventsIn))).toEqual([6, 7]);
  });

  it('receives a recording from the start after a restart, although its time was later', () => {
    const replica = new Replica();
    const { read } = replica.join(elsewhere(begin - 50_000));
    read();
    replica.take(...framesOf(range(1, 5), (n) => begin - 90_000 + n));
    expect(numbersOf(read().flatMap(eventsIn))).toEqual(range(1, 5));
  });

  it('resumes correctly when the clock of the source was set back', () => {
    const times = [100, 101, 50, 51, 52, 53];
    const replica = new Replica().take(...framesOf(range(1, 6), (n) => begin + times[n - 1]!));
    expect(numbersOf(replica.eventsFor(elsewhere(begin + 51)))).toEqual([5, 6]);
    expect(numbersOf(replica.eventsFor(elsewhere(begin + 101)))).toEqual([]);
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

  it('limits the replay for a returning client: older events become a gap with the number of frames', () => {
    const replica = new Replica({ maxReplayBytes: 1_000 }).take(opened(begin), ...lines(200));
    const received = replica.eventsFor(`${replica.run.epoch}.51.50.${begin + 50}`);
    const numbers = numbersOf(received);
    expect(numbers).toEqual(range(numbers[0]!, 200));
    expect(numbers.length).toBeGreaterThan(5);
    expect(received[1]).toMatchObject({
      type: 'gap',
      from: begin + 50,
      to: begin + numbers[0]! - 1,
      missed: numbers[0]! - 51,
    });
  });

  it('allows exactly that many bytes', () => {
    const bytes = Buffer.byteLength(frameLine(frame(1, begin + 1))) - 1;
    const replica = (more: number) => new Replica({ maxReplayBytes: bytes * 9 + more }).take(...lines(9));
    const id = ({ run }: Replica) => `${run.epoch}.0.0.${begin}`;
    const [enough, little] = [replica(0), replica(-1)];
    expect([enough.join(id(enough)).client, little.join(id(little)).client]).toMatchObject([
      { joined: 'resumed' },
      { joined: 'behind', missed: 1 },
    ]);
  });

  it('counts UTF-8 bytes, and skips an event that is larger', () => {
    const wide = new Replica({ maxReplayBytes: 1_000 }).take(opened(begin), frame('漢'.repeat(400), begin + 1));
    expect(numbersOf(wide.eventsFor(elsewhere(begin - 1)))).toEqual([]);
    expect(typesOf(wide.eventsFor(elsewhere(begin - 1)))).toEqual(['opened', 'gap']);
  });

  it('limits the replay for any header', () => {
    const replica = new Replica({ maxReplayBytes: 2_000 }).take(opened(begin), ...lines(500));
    const number = fc.oneof(
      fc.nat(600),
      fc.constantFrom(0, 1, begin - 1, begin + 100, 10 ** 15, 9_000_000_000_000_000),
    );
    const epoch = fc.constantFrom('mine', 'otherrun', 'x', '-', '_');
    fc.assert(
      fc.property(epoch, number, number, number, (word, seq, frames, at) => {
        const id = `${word === 'mine' ? replica.run.epoch : word}.${seq}.${frames}.${at}`;
        // The lines of the log, `data: ` before each, and `opened` with its gap.
        expect(sentTo(replica, id)).toBeLessThan(2_000 * 1.2 + 1_000);
      }),
      { numRuns: cases(100) },
    );
  });
});

/** The steps of a page: it reads, or it joins a replica with its last id. */
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
  /** Makes a page switch between two relays, and returns all messages that it received. */
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
        const time = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
        replica.now = time + (index === 0 ? one : other);
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

  const inOrder = (times: readonly number[]): void => expect(times).toEqual(times.toSorted((a, b) => a - b));

  it('receives no late frame twice when it returns to a relay twice within the same ms', () => {
    const same = range(1, 3).map((n) => frame(n, begin + 1));
    const [one, other] = [new Replica().take(opened(begin)), new Replica().take(opened(begin))];
    one.take(...same.slice(0, 2));
    other.take(...same.slice(0, 1));
    const id = one.join().read().at(-1)!.id;
    const back = other.join(id).read();
    expect(numbersOf(back.flatMap(eventsIn))).toEqual([]);
    const again = other.join(back.at(-1)!.id);
    other.take(...same.slice(1), frame(4, begin + 2));
    expect(numbersOf(again.read().flatMap(eventsIn))).toEqual([4]);
  });

  it('receives each frame of one source once, times never decrease, and a gap covers each missing frame', () => {
    fc.assert(
      fc.property(timeline, moves, clocks, (source, steps, differences) => {
        const messages = switchBetween([source, source], steps, differences);
        const received = messages.flatMap(eventsIn);
        const numbers = numbersOf(received);
        expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
        inOrder(received.map(timeIn));
        const gaps = received.filter(({ type }) => type === 'gap') as unknown as { from: number; to: number }[];
        // A late relay will still send the frames after the last one.
        const last = timeIn(received.at(-1)!);
        const lost = source
          .filter(isFrame)
          .filter((each) => each.receivedAt <= last && !numbers.includes(Number(each.text())));
        expect(lost.filter(({ receivedAt: at }) => !gaps.some(({ from, to }) => from <= at && at <= to))).toEqual([]);
      }),
      { numRuns: cases(200) },
    );
  });

  it('receives each frame of two sources once, with times that never decrease, and a gap at each change', () => {
    fc.assert(
      fc.property(timeline, timeline, moves, clocks, (one, two, steps, differences) => {
        const other = two.map((event) =>
          event.type === 'frame' ? frame(`1000${event.text()}`, event.receivedAt, 1) : event,
        );
        const received = switchBetween([one, other], steps, differences).flatMap(eventsIn);
        const numbers = numbersOf(received);
        expect(new Set(numbers).size).toBe(numbers.length);
        inOrder(received.map(timeIn));
        // Between frames of two sources there is always a gap.
        const order = received.flatMap((event) =>
          event.type === 'gap' ? '|' : numbersOf([event]).map((n) => (n < 1e4 ? 'a' : 'b')),
        );
        expect(order.join('')).not.toMatch(/ab|ba/);
      }),
      { numRuns: cases(200) },
    );
  });

  it('receives watermarks that never decrease from a late relay, and no event before one', () => {
    const replica = new Replica().take(opened(begin), ...framesOf(range(1, 3)));
    const { read } = replica.join(elsewhere(begin + 9));
    const messages = read();
    replica.take(...framesOf(range(4, 6)));
    messages.push(...read());
    const marks = messages.filter(isBatch).map(watermarkIn);
    expect(marks.every((at) => (at as number) >= begin + 9)).toBe(true);
  });

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
