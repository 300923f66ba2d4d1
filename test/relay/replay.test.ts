import { describe, expect, it } from '@jest/globals';
import { identity } from 'rxjs';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { relayGap } from '../../src/protocol/feed-state.js';
import {
  afterRecord,
  formatPlace,
  parsePlace,
  type Place,
  startOf,
  type StoredLine,
  type StoredOptions,
  type StoredRecords,
} from '../../src/protocol/place.js';
import type { RelayOptions } from '../../src/relay/index.js';
import { waitFor } from '../support/wait-for.js';
import { type Client, frame, inOrder, range, Response, timeIn, virtualRelay } from './support.js';

const begin = 1_000_000;
const open = { type: 'opened', at: begin, completeFrom: begin, feed: 'market', connection: 1 } as const;
const perPart = 10;
const turns = async (): Promise<void> => {
  for (let n = 0; n < 20; n += 1) await new Promise(setImmediate);
};

/** A line of frames in a store, whose numbers are their offsets. */
class Line implements StoredLine {
  readonly places: Place[] = [startOf('line', 0, begin)];
  /** What each read was asked for. */
  readonly reads: { readonly after: Place; readonly options: StoredOptions; parts: number }[] = [];
  /** How many parts are read before the store stands still. */
  limit = Infinity;
  failure: Error | undefined;
  /** How many records the store has. */
  kept = Infinity;

  add(count: number): readonly RelayedEvent[] {
    return range(1, count).map(() => {
      const before = this.places.at(-1)!;
      const place = afterRecord(before, { type: 'frame' }, before.at + 1);
      this.places.push(place);
      return Object.assign(frame(place.offset, place.at), { position: place });
    });
  }

  get newest(): Place {
    return this.places.at(-1)!;
  }

  /** The id of a page that has so many records. */
  id(offset: number): string {
    return formatPlace(this.places[offset]!);
  }

  get running(): number {
    return this.reads.filter(({ options }) => !options.signal.aborted).length;
  }

  async *stored(after: Place, options: StoredOptions): AsyncIterable<StoredRecords> {
    const read = { after, options, parts: 0 };
    this.reads.push(read);
    const end = Math.min(this.newest.offset, this.kept);
    if (options.isNext !== true) yield { parts: [open], frames: 0, end: after };
    for (let { offset } = after; offset < end;) {
      await waitFor(() => options.signal.aborted || this.failure !== undefined || this.parts < this.limit);
      if (options.signal.aborted) return;
      if (this.failure !== undefined) throw this.failure;
      const to = Math.min(offset + perPart, end);
      read.parts += 1;
      yield {
        parts: [
          Buffer.from(
            range(offset + 1, to)
              .map(fieldOf)
              .join(''),
          ),
        ],
        frames: to - offset,
        end: this.places[to]!,
      };
      offset = to;
    }
  }

  /** How many parts were read. */
  get parts(): number {
    return this.reads.reduce((sum, { parts }) => sum + parts, 0);
  }
}

const fieldOf = (n: number): string =>
  `data: {"type":"frame","feed":"market","connection":1,"receivedAt":${begin + n},"isBinary":false,"encoding":"utf8","data":"${n}"}\n`;

/** A relay over a line, whose memory has only the newest records. */
const start = (options: RelayOptions = {}, stored = 200) => {
  const line = new Line();
  const { source, ...relay } = virtualRelay({ log: line, capacity: 20, ...options });
  relay.relay.hold();
  const emit = (count: number): void => {
    source.emit(...line.add(count));
    relay.clock.pass(16);
  };
  source.emit(Object.assign({ ...open }, { position: line.newest }));
  if (stored > 0) emit(stored);
  return { line, source, emit, ...relay };
};

const numbersIn = ({ payloads }: Client): readonly number[] => payloads.map(Number);
const gapsIn = ({ events }: Client) => events.filter(({ type }) => type === 'gap');
const untilHas = (client: Client, last: number) => waitFor(() => numbersIn(client).at(-1) === last);

describe('a page whose place is older than the memory of the relay', () => {
  it('receives every event once, in messages whose ids are its places', async () => {
    const { line, join, emit, reports } = start();
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 200);
    emit(5);
    expect(numbersIn(page)).toEqual(range(51, 205));
    expect(page.events[0]).toMatchObject({ type: 'opened' });
    expect(page.events.map(({ type }) => type).filter((type) => type !== 'frame')).toEqual(['opened']);
    inOrder(page.events.map(timeIn));
    let last = 50;
    for (const { id, data } of page.batches) {
      last = Number(/.*"data":"(\d+)"/s.exec(data)?.[1] ?? last);
      expect(parsePlace(id)).toMatchObject({ line: 'line', offset: last, frames: last });
    }
    expect(reports.map(({ type }) => type)).toEqual(['client-joined']);
  });

  it('receives what follows from the memory as soon as that has it', async () => {
    const { line, join } = start();
    await untilHas(join({ lastEventId: line.id(100) }), 200);
    expect(line.parts).toBe(8);
  });

  it('needs no store if the memory has what follows', () => {
    const { line, join } = start();
    const page = join({ lastEventId: line.id(185) });
    expect([numbersIn(page), line.reads]).toEqual([range(186, 200), []]);
  });

  it('reads nothing from the store if it has a topic, because its operator has no past', async () => {
    const { line, join } = start();
    const page = join({ lastEventId: line.id(50), select: identity });
    await turns();
    expect(line.reads).toEqual([]);
    expect(page.error).toBeUndefined();
  });

  it('receives the newest events after a gap if the memory has as much as a page may receive', () => {
    const { line, join } = start({ maxReplayBytes: 500 });
    const page = join({ lastEventId: line.id(50) });
    expect(line.reads).toEqual([]);
    expect(gapsIn(page)).toMatchObject([{ missed: 200 - 50 - numbersIn(page).length }]);
  });
});

describe('a relay that has restarted', () => {
  it('sends what its store has before its source emits, then what follows, without a second status', async () => {
    const { line, clock } = start({}, 0);
    // Nothing is in the memory of the next relay.
    line.add(95);
    const next = virtualRelay({ log: line });
    const page = next.join({ lastEventId: line.id(30) });
    await untilHas(page, 95);
    line.add(5);
    next.source.emit(Object.assign({ ...open, at: clock.now }, { position: line.newest }));
    next.clock.pass(16);
    await untilHas(page, 100);
    next.source.emit(...line.add(3));
    next.clock.pass(16);
    await untilHas(page, 103);
    expect(numbersIn(page)).toEqual(range(31, 103));
    expect(page.events.filter(({ type }) => type !== 'frame')).toMatchObject([{ type: 'opened' }]);
    expect(line.reads.map(({ after, options }) => [after.offset, options.isNext])).toEqual([
      [30, false],
      [95, true],
    ]);
  });

  it('tells a page that has everything the status only', async () => {
    const { line } = start({}, 0);
    line.add(10);
    const next = virtualRelay({ log: line });
    const page = next.join({ lastEventId: line.id(10) });
    await waitFor(() => page.events.length > 0);
    next.source.emit(Object.assign({ ...open }, { position: line.newest }));
    next.clock.pass(16);
    next.source.emit(...line.add(1));
    next.clock.pass(16);
    expect(page.events.map(({ type }) => type)).toEqual(['opened', 'frame']);
    expect(next.reports.map(({ type }) => type)).toEqual(['client-joined']);
  });
});

describe('many replays', () => {
  it('read only `maxReplays` at once; the other pages wait with heartbeats, and the newest goes first', async () => {
    const { line, join, clock } = start({ maxReplays: 3, heartbeatMs: 1_000 });
    line.limit = 0;
    const pages = range(1, 8).map((n) => join({ lastEventId: line.id(50 + n) }));
    await waitFor(() => line.running === 3);
    clock.pass(1_000);
    expect(pages.map(({ types }) => types.at(-1))).toEqual(pages.map(() => 'heartbeat'));
    expect(line.running).toBe(3);
    line.limit = Infinity;
    await Promise.all(pages.map((page) => untilHas(page, 200)));
    expect(line.reads.map(({ after }) => after.offset)).toEqual([51, 52, 53, 58, 57, 56, 55, 54]);
    expect(pages.map((page) => numbersIn(page).length)).toEqual(range(1, 8).map((n) => 150 - n));
    expect(line.running).toBe(0);
  });

  it('end with their pages, also while they wait', async () => {
    const { line, join } = start({ maxReplays: 1 });
    line.limit = 2;
    const pages = range(1, 3).map(() => join({ lastEventId: line.id(50) }));
    await waitFor(() => line.parts === 2);
    pages[1]!.leave();
    pages[0]!.leave();
    line.limit = Infinity;
    await untilHas(pages[2]!, 200);
    expect(line.reads).toHaveLength(2);
  });
});

describe('the response of a page that replays', () => {
  it('gets the next part only while it takes more', async () => {
    const { line, join, clock } = start();
    const response = new Response();
    const page = join({ lastEventId: line.id(50), response }, response.fill);
    for (let drains = 0; numbersIn(page).at(-1) !== 200; drains += 1) {
      const { length } = page.messages;
      clock.pass(5_000);
      await turns();
      expect(page.messages).toHaveLength(length);
      expect(line.parts).toBeLessThanOrEqual(drains + 1);
      response.drain();
      await turns();
    }
    expect(numbersIn(page)).toEqual(range(51, 200));
    // Nobody waits for its room.
    expect(line.reads).toHaveLength(1);
  });

  it('gives its room to others if it takes nothing for a second, and goes on later', async () => {
    const { line, join, clock } = start({ maxReplays: 1 });
    const response = new Response();
    const slow = join({ lastEventId: line.id(50), response }, response.fill);
    await turns();
    const other = join({ lastEventId: line.id(60) });
    await turns();
    expect(numbersIn(other)).toEqual([]);
    clock.pass(1_000);
    await untilHas(other, 200);
    expect(numbersIn(slow).length).toBeLessThan(20);
    for (let last = -1; last !== 200; last = numbersIn(slow).at(-1) ?? 0) {
      response.drain();
      await turns();
    }
    expect(numbersIn(slow)).toEqual(range(51, 200));
    expect(slow.events.filter(({ type }) => type === 'opened')).toHaveLength(1);
  });
});

it('a page that was too slow for the memory receives what it lacks from the store', async () => {
  const { line, join, emit, reports } = start();
  const response = new Response();
  const page = join({ response });
  emit(5);
  response.fill();
  for (let n = 0; n < 10; n += 1) emit(15);
  response.drain();
  await untilHas(page, 355);
  emit(1);
  expect(numbersIn(page)).toEqual(range(201, 356));
  expect(page.events.filter(({ type }) => type !== 'frame')).toMatchObject([{ type: 'opened' }]);
  expect([line.reads.length, reports.map(({ type }) => type)]).toEqual([1, ['client-joined']]);
});

describe('a store', () => {
  it('that has nothing of the line costs a gap at once', async () => {
    const { line, join, reports } = start();
    line.stored = async function* () {
      await turns();
      yield* [];
    };
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 200);
    expect(gapsIn(page)).toMatchObject([{ missed: 130 }]);
    expect(reports.at(-1)).toMatchObject({ type: 'client-behind', missed: 130 });
  });

  it('that fails in the middle costs a gap, which the relay reports', async () => {
    const { line, join, reports, emit, relay } = start();
    line.limit = 3;
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 80);
    expect(relay.status().failedReplays).toBe(0);
    line.failure = new Error('disk');
    await waitFor(() => gapsIn(page).length > 0);
    emit(2);
    expect(numbersIn(page)).toEqual([...range(51, 80), ...range(181, 202)]);
    expect(gapsIn(page)).toMatchObject([{ missed: 100, failure: { code: 'relay-behind' } }]);
    expect(reports.filter(({ type }) => type === 'replay-failed')).toMatchObject([{ error: { message: 'disk' } }]);
    expect(relay.status().failedReplays).toBe(1);
  });

  it('that lags the source is asked again', async () => {
    const { line, join, clock } = start();
    line.kept = 120;
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 120);
    await turns();
    line.kept = Infinity;
    clock.pass(1_000);
    await untilHas(page, 200);
    expect(numbersIn(page)).toEqual(range(51, 200));
  });

  it('that never has what the source has emitted costs a gap after 5 s', async () => {
    const { line, join, clock } = start();
    line.kept = 120;
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 120);
    for (let n = 0; n < 30; n += 1) {
      await turns();
      clock.pass(250);
    }
    expect(numbersIn(page)).toEqual([...range(51, 120), ...range(181, 200)]);
    expect(gapsIn(page)).toMatchObject([{ missed: 60 }]);
  });

  it('that keeps less than the page lacks says so in a gap, which counts as missed', async () => {
    const { line, join, reports, relay } = start();
    const { stored } = line;
    line.stored = async function* (after, options) {
      yield { parts: [open, relayGap({ from: begin, to: begin + 90, frames: 40 })], frames: 0, end: line.places[90]! };
      yield* stored.call(line, line.places[90]!, { ...options, isNext: true });
      expect(after.offset).toBe(50);
    };
    const page = join({ lastEventId: line.id(50) });
    await untilHas(page, 200);
    expect(numbersIn(page)).toEqual(range(91, 200));
    expect(gapsIn(page)).toMatchObject([{ missed: 40 }]);
    expect(reports.at(-1)).toMatchObject({ type: 'client-behind', missed: 40 });
    expect(relay.status().clients).toMatchObject([{ sent: 110, missed: 40 }]);
  });
});

it('a page whose relay closes in the middle continues at another one with the id that it has reached', async () => {
  const { line, join, relay } = start();
  line.limit = 3;
  const page = join({ lastEventId: line.id(50) });
  await untilHas(page, 80);
  relay.close();
  await waitFor(() => page.isComplete);
  expect([page.types.at(-1), parsePlace(page.lastEventId)]).toMatchObject(['connect-again', { offset: 80 }]);
  expect(line.running).toBe(0);
});

it('a page arrives although the memory moves on while it reads', async () => {
  const { line, join, emit } = start();
  line.limit = 1;
  const page = join({ lastEventId: line.id(150) });
  for (let n = 0; n < 20; n += 1) {
    emit(30);
    line.limit += n < 10 ? 2 : 5;
    await turns();
  }
  line.limit = Infinity;
  await untilHas(page, 800);
  expect(numbersIn(page)).toEqual(range(151, 800));
});
