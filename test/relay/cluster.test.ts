import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type SchedulerLike, Subject } from 'rxjs';
import { Follower } from '../../src/cluster/follower.js';
import type { FeedMessage } from '../../src/cluster/messages.js';
import { Publisher } from '../../src/cluster/publisher.js';
import type { ClusterEvent, FeedEvent } from '../../src/index.js';
import type { LifecycleEvent, OwnerChanged, RelayedEvent } from '../../src/protocol/event.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { gapOfMissed } from '../../src/protocol/feed-state.js';
import { formatPlace, type Place, startOf } from '../../src/protocol/place.js';
import { createRelay, type RelayOptions } from '../../src/relay/index.js';
import { cases } from '../support/cases.js';
import { Client, Clock, frame, range, type WireEvent } from './support.js';

const begin = 1_000_000;

/** A replica of a cluster, with its relay. */
class Replica {
  readonly #follower;
  readonly relay;

  constructor(scheduler: SchedulerLike, options: RelayOptions = {}) {
    const events = new Subject<FeedEvent | OwnerChanged>();
    this.#follower = new Follower('market', (event) => events.next(event));
    this.relay = createRelay(events, { scheduler, batchMs: 0, cluster: this.#follower, ...options });
    this.relay.hold();
  }

  receive(messages: readonly FeedMessage[]): void {
    for (const message of messages) this.#follower.receive(message, message.at);
  }

  away(): void {
    this.#follower.away('away');
  }
}

/** The owners of a cluster, which number their frames. */
class Owners {
  readonly #publisher = new Publisher();
  #generation = 0;
  #frames = 0;

  readonly clock;
  constructor(clock: Clock) {
    this.clock = clock;
  }

  get line(): string {
    return this.#publisher.place.line;
  }

  /** The messages of a new owner. */
  next(owner = `replica-${'0123456789ab'.slice(this.#generation % 10)}xyzxyzxyzxyz`): readonly FeedMessage[] {
    const previous = { ...this.#publisher.place };
    this.#generation += 1;
    this.clock.pass(1);
    const { now } = this.clock;
    this.#publisher.report({ gen: this.#generation, owner, phase: 'open', revision: this.#generation }, now, true);
    const line = previous.gen > 0 ? previous : undefined;
    this.#publisher.begin({ emitted: previous, hasEnded: true, heardAt: now, line }, undefined, now);
    const opened = this.event({ type: 'opened', at: now, feed: 'market', connection: 1 });
    return [
      ...opened,
      ...this.event(gapOfMissed({ from: now, to: now, frames: undefined }, clusterMeanings.ownerChanged)),
    ];
  }

  event(event: LifecycleEvent): readonly FeedMessage[] {
    return [this.#publisher.event(event)];
  }

  frames(count = 1): readonly FeedMessage[] {
    return range(1, count).map(() => {
      this.#frames += 1;
      return this.#publisher.frame(frame(this.#frames, this.clock.now));
    });
  }

  beat(): readonly FeedMessage[] {
    return [this.#publisher.beat(this.clock.now)];
  }
}

/** A page that connects to one replica after another. */
class Page {
  readonly events: WireEvent[] = [];
  #client: Client | undefined;
  #lastEventId: string | undefined;

  readonly clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  join({ relay }: Replica): this {
    this.leave();
    this.#client = new Client(relay, { lastEventId: this.#lastEventId });
    this.clock.pass(1);
    return this;
  }

  /** Leaves the replica with the id of the last message. */
  leave(): void {
    this.#client?.leave();
    if (this.#client === undefined) return;
    this.events.push(...this.#client.events);
    this.#lastEventId = this.#client.lastEventId;
    this.#client = undefined;
  }

  get id(): string | undefined {
    return this.#client?.lastEventId ?? this.#lastEventId;
  }

  get received(): readonly WireEvent[] {
    return [...this.events, ...(this.#client?.events ?? [])];
  }

  get numbers(): readonly number[] {
    return this.received.flatMap(({ type, data }) => (type === 'frame' ? [Number(data)] : []));
  }

  get gaps(): readonly WireEvent[] {
    return this.received.filter(({ type }) => type === 'gap');
  }
}

const cluster = (options?: RelayOptions) => {
  const clock = new Clock(begin);
  const owners = new Owners(clock);
  const [one, other] = [new Replica(clock.scheduler, options), new Replica(clock.scheduler, options)];
  const both = (messages: readonly FeedMessage[]): void => {
    for (const replica of [one, other]) replica.receive(messages);
    clock.pass(1);
  };
  const page = () => new Page(clock);
  /** A page that has six frames and moves to a replica with two of them; `rest` are the other four. */
  const pageAhead = () => {
    const opened = owners.next();
    const frames = owners.frames(6);
    one.receive([...opened, ...frames]);
    other.receive([...opened, ...frames.slice(0, 2)]);
    return { moved: page().join(one).join(other), rest: frames.slice(2) };
  };
  return { clock, owners, one, other, both, page, pageAhead };
};

describe('the relays of replicas', () => {
  it('report the frames that a replica has missed, without those that the page has', () => {
    const { clock, owners, one, other, page } = cluster();
    const opened = owners.next();
    const frames = owners.frames(10);
    one.receive([...opened, ...frames.slice(0, 6)]);
    other.receive([...opened, ...frames.slice(0, 2)]);
    const moved = page().join(one);
    moved.leave();
    other.receive(frames.slice(8));
    clock.pass(1);
    moved.join(other);
    expect(moved.numbers).toEqual([9, 10]);
    expect(moved.gaps).toMatchObject([{ missed: 2 }]);
  });

  it('report only the frames that a replica that started later cannot have', () => {
    const { clock, owners, one, page } = cluster();
    const opened = owners.next();
    const before = owners.frames(5);
    one.receive([...opened, ...before]);
    const viewer = new Client(one.relay);
    clock.pass(1);
    const [reached, ahead] = [page().join(one), page().join(one)];
    const missing = owners.frames(3);
    const late = new Replica(clock.scheduler);
    reached.leave();
    one.receive(missing);
    clock.pass(1);
    ahead.leave();
    late.receive(owners.beat());
    for (const each of [reached, ahead]) each.join(late);
    late.receive(owners.frames(2));
    clock.pass(1);
    expect([reached.numbers, ahead.numbers]).toEqual([
      [9, 10],
      [6, 7, 8, 9, 10],
    ]);
    // How many is unknown: its id doesn't say how many gaps without a number came before.
    expect(reached.gaps.map(({ missed }) => missed)).toEqual([undefined]);
    expect(ahead.gaps).toEqual([]);
    viewer.leave();
  });

  it('report the frames that the log has removed', () => {
    const { owners, one, other, both, page } = cluster({ capacity: 4 });
    both(owners.next());
    const moved = page().join(one);
    both(owners.frames(2));
    moved.leave();
    both(owners.frames(10));
    moved.join(other);
    expect(moved.numbers).toEqual([1, 2, 9, 10, 11, 12]);
    expect(moved.gaps).toMatchObject([{ failure: { code: 'relay-behind' } }]);
    expect(moved.gaps[0]).not.toHaveProperty('missed');
  });

  it.each([
    ['the same owner', false],
    ['another owner', true],
  ])('report the frames that the log has removed before it reached the page, of %s', (_whose, changes) => {
    const { clock, owners, other, pageAhead } = cluster({ capacity: 4 });
    const { moved, rest } = pageAhead();
    other.receive([...(changes ? owners.next() : rest), ...owners.frames(14)]);
    clock.pass(1);
    expect(moved.numbers).toEqual([17, 18, 19, 20]);
    expect(moved.gaps).toMatchObject([{ failure: { code: 'relay-behind' } }]);
  });

  it('report one gap for a change of the owner, even if the page moves at that time', () => {
    const { owners, one, other, both, page } = cluster();
    both(owners.next());
    const [stays, moves] = [page().join(one), page().join(one)];
    both(owners.frames(3));
    moves.leave();
    both(owners.next());
    both(owners.frames(3));
    moves.join(other);
    for (const { numbers, gaps } of [stays, moves]) {
      expect(numbers).toEqual(range(1, 6));
      expect(gaps).toMatchObject([{ failure: { code: 'owner-changed' } }]);
    }
  });

  it('continue after the position of a page while they still read their log from long ago', () => {
    const clock = new Clock(begin);
    const owners = new Owners(new Clock(begin - 60_000));
    const replica = new Replica(clock.scheduler);
    replica.receive([...owners.next(), ...owners.frames(3)]);
    clock.pass(1);
    const page = new Client(replica.relay);
    clock.pass(1);
    const [run] = page.lastEventId.split('.');
    page.leave();
    const returning = new Client(replica.relay, { lastEventId: `${run}.7.5.${clock.now}` });
    replica.receive(owners.frames(4));
    clock.pass(1);
    expect(returning.payloads).toEqual(['6', '7']);
    returning.leave();
  });

  it('continue after the position of a page that joins before they have received anything, as after a restart', () => {
    const { clock, owners, one, page } = cluster();
    const messages = [...owners.next(), ...owners.frames(3)];
    one.receive(messages);
    clock.pass(1);
    const restarted = new Replica(clock.scheduler);
    const moved = page().join(one).join(restarted);
    restarted.receive([...messages, ...owners.frames(2)]);
    clock.pass(1);
    expect([moved.numbers, moved.gaps]).toEqual([[4, 5], []]);
  });

  it('send a gap to a page whose place is in the line of another store', () => {
    const { clock, owners, one, page } = cluster();
    const other = new Owners(clock);
    const restored = new Replica(clock.scheduler);
    one.receive([...owners.next(), ...owners.frames(4)]);
    restored.receive([...other.next(), ...other.frames(2)]);
    clock.pass(1);
    const moved = page().join(one).join(restored);
    clock.pass(1);
    restored.receive(other.frames(2));
    clock.pass(1);
    expect(moved.gaps.length).toBe(1);
    expect(moved.numbers.slice(-2)).toEqual([3, 4]);
  });

  it('do not wait for a position that no replica reaches', () => {
    const { clock, owners, one, both } = cluster();
    both(owners.next());
    both(owners.frames(2));
    const id = `l${owners.line}-9.50.40.${clock.now}`;
    const client = new Client(one.relay, { lastEventId: id });
    both(owners.frames(2));
    expect([client.payloads, client.lastEventId]).toEqual([[], id]);
    clock.pass(20_000);
    both(owners.beat());
    both(owners.frames(1));
    expect(client.payloads).toEqual(['5']);
    expect(client.events.map(({ type }) => type)).toContain('gap');
  });
});

describe('a relay whose source has the places of a log', () => {
  const overLog = (options: RelayOptions = {}) => {
    const clock = new Clock(begin);
    const source = new Subject<RelayedEvent>();
    const relay = createRelay(source, { scheduler: clock.scheduler, batchMs: 0, ...options });
    relay.hold();
    const send = (event: RelayedEvent, place: Partial<Place> = {}): void =>
      source.next(Object.assign(event, { position: { ...startOf('a', 0, clock.now), ...place } }));
    const open = (line?: string) => {
      const { now } = clock;
      const event = { type: 'opened', at: now, feed: 'market', connection: 1, completeFrom: now } as const;
      send({ ...event }, { offset: 1, ...(line !== undefined && { line }) });
    };
    /** Frames with these numbers, one per ms, the first one at the offset 2. */
    const frames = (numbers: readonly number[], place: Partial<Place> = {}): void => {
      for (const n of numbers) {
        clock.pass(1);
        send(frame(n, clock.now), { offset: n + 1, frames: n, ...place });
      }
      clock.pass(1);
    };
    const id = (place: Partial<Place>) => formatPlace({ ...startOf('a', 0, begin), ...place });
    const join = (lastEventId: string) => {
      const client = new Client(relay, { lastEventId });
      clock.pass(1);
      return client;
    };
    const gapsOf = ({ events }: Client) => events.filter(({ type }) => type === 'gap');
    return { clock, open, frames, id, join, gapsOf };
  };

  it('continues after the place of a page that comes from another relay', () => {
    const { open, frames, id, join, gapsOf } = overLog();
    open();
    frames(range(1, 6));
    const page = join(id({ offset: 4, frames: 3 }));
    expect([page.payloads, gapsOf(page)]).toEqual([['4', '5', '6'], []]);
    expect(page.lastEventId).toMatch(/^la-0\.7\.6\.\d+\.\d+$/);
    page.leave();
  });

  it.each<[string, number, number, number | undefined]>([
    ['the log never had a hole', 0, 0, 3],
    ['a hole is before both', 1, 1, 3],
    ['a hole may be between', 0, 1, undefined],
  ])('counts the frames that a page has missed if %s', (_what, before, after, missed) => {
    const { open, frames, id, join, gapsOf } = overLog({ maxReplayBytes: 400 });
    open();
    frames(range(1, 3), { holes: before });
    frames(range(4, 8), { holes: after });
    const page = join(id({ offset: 3, frames: 2 }));
    const first = Number(page.payloads[0]);
    const [gap] = gapsOf(page);
    expect(gap).toMatchObject({ failure: { code: 'relay-behind' } });
    expect([first, gap!['missed']]).toEqual([6, missed]);
    page.leave();
  });

  it('counts no frames from a place at which their number is unknown, as after damage', () => {
    const { open, frames, join, gapsOf } = overLog({ capacity: 4 });
    open();
    frames(range(1, 3), { frames: NaN });
    const page = join('');
    const { lastEventId } = page;
    page.leave();
    frames(range(4, 12));
    const again = join(lastEventId);
    expect(again.payloads).toEqual(['9', '10', '11', '12']);
    expect(gapsOf(again)).toHaveLength(1);
    expect(gapsOf(again)[0]).not.toHaveProperty('missed');
    again.leave();
  });

  it.each([
    ['of another log', 'b'],
    ['without a place', ''],
  ])('continues by time if the first event is %s', (_what, line) => {
    const { clock, open, frames, id, join, gapsOf } = overLog();
    const page = join(id({ offset: 9, frames: 8, at: clock.now + 5 }));
    open(line);
    frames(range(1, 8), { line });
    expect(page.payloads).toEqual(['5', '6', '7', '8']);
    expect(gapsOf(page)[0]).toMatchObject({ from: begin, to: begin + 6, failure: { code: 'relay-behind' } });
    for (const gap of gapsOf(page)) expect(gap).not.toHaveProperty('missed');
    page.leave();
  });
});

it('send pages no event about the engine of the cluster, because its message is text of other code', () => {
  const source = new Subject<FeedEvent | ClusterEvent>();
  const clock = new Clock(begin);
  const client = new Client(createRelay(source, { batchMs: 0, scheduler: clock.scheduler }), {});
  source.next({ type: 'opened', at: 1, feed: 'market', connection: 1 });
  source.next({ type: 'engine-refused', at: 2, since: 1, operation: 'read', message: 'of redis-7', advice: 'advice' });
  source.next({ type: 'engine-recovered', at: 3, durationMs: 1 });
  clock.pass(1);
  expect(client.events.map(({ type }) => type)).toContain('opened');
  expect(JSON.stringify(client.events)).not.toMatch(/engine|redis-7|advice/);
  client.leave();
});

type Action =
  | { readonly type: 'frames'; readonly count: number; readonly lostBy: number | undefined }
  | { readonly type: 'move'; readonly to: number }
  | { readonly type: 'owner' | 'catch-up' };

const actions: fc.Arbitrary<readonly Action[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant('frames' as const),
        count: fc.integer({ min: 1, max: 4 }),
        lostBy: fc.option(fc.nat(2), { nil: undefined }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('move' as const), to: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.constantFrom({ type: 'owner' as const }, { type: 'catch-up' as const }) },
  ),
  { maxLength: 40 },
);

it('a page that moves between replicas at random receives each frame once and in order, and each loss inside a gap, with the exact number if the log has room', () => {
  fc.assert(
    fc.property(actions, fc.constantFrom(4, 1_000, 1_000), (list, capacity) => {
      const clock = new Clock(begin);
      const owners = new Owners(clock);
      const replicas = range(1, 3).map(() => new Replica(clock.scheduler, { capacity }));
      const delayed = replicas.map((): FeedMessage[] => []);
      const send = (messages: readonly FeedMessage[], lostBy?: number): void => {
        for (const [index, queue] of delayed.entries()) if (index !== lostBy) queue.push(...messages);
        // The first replica receives at once, the others when they catch up.
        replicas[0]!.receive(delayed[0]!.splice(0));
        clock.pass(1);
      };
      const catchUp = (): void => {
        for (const [index, replica] of replicas.entries()) replica.receive(delayed[index]!.splice(0));
        clock.pass(1);
      };
      send(owners.next());
      catchUp();
      const page = new Page(clock).join(replicas[0]!);
      for (const action of list) {
        if (action.type === 'frames') send(owners.frames(action.count), action.lostBy);
        else if (action.type === 'owner') send(owners.next());
        else if (action.type === 'move') page.join(replicas[action.to]!);
        else catchUp();
      }
      send(owners.beat());
      catchUp();
      checkReceived(page.received, capacity === 1_000);
    }),
    { numRuns: cases(300) },
  );
});

/**
 * Frames ascend and missing ones are in gaps; numbers are exact if every gap in that place has one. A full log may have
 * removed a gap of the source, and the number of the relay does not contain those frames.
 */
const checkReceived = (events: readonly WireEvent[], isRoomy: boolean): void => {
  let last: number | undefined;
  let gaps: WireEvent[] = [];
  for (const event of events) {
    if (event.type === 'gap') gaps.push(event);
    if (event.type !== 'frame') continue;
    const number = Number(event['data']);
    if (last !== undefined) {
      const missing = number - last - 1;
      expect(missing).toBeGreaterThanOrEqual(0);
      if (missing > 0) expect(gaps.length).toBeGreaterThan(0);
      const numbers = gaps.flatMap(({ missed }) => (typeof missed === 'number' ? missed : []));
      const sum = numbers.reduce((a, b) => a + b, 0);
      expect(sum).toBeLessThanOrEqual(missing);
      if (isRoomy && numbers.length === gaps.length) expect(sum).toBe(missing);
    }
    last = number;
    gaps = [];
  }
};
