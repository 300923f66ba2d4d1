import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { Frame } from '../../src/protocol/frame.js';
import { startOf } from '../../src/protocol/place.js';
import { Ring } from '../../src/operators/bounded/ring.js';
import type { Checkpoint } from '../../src/relay/chunk.js';
import { EventLog, linesOf, type LogBounds, type LoggedEvent } from '../../src/relay/event-log.js';
import { relayError } from '../../src/browser/relay-error.js';
import { disconnected, gapOf, lost, opened, watermark } from '../operators/stream.js';
import { frame, range } from './support.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';

const roomy: LogBounds = { capacity: 1_000_000, capacityBytes: 1e9, maxReplayBytes: 1e9 };
const logOf = (bounds: Partial<LogBounds>, payloads: readonly (string | number)[]) => {
  const log = new EventLog({ ...roomy, ...bounds }, () => 5);
  for (const payload of payloads) log.append(frame(payload));
  return log;
};

/** Reads all payloads after a position. */
const readFrom = (log: EventLog, from: Checkpoint): string[] => {
  const lines: string[] = [];
  for (let at = from, batch = log.read(at); batch !== undefined; batch = log.read(at)) {
    lines.push(
      ...linesOf(batch)
        .split('\n')
        .map((line) => (JSON.parse(line) as { data: string }).data),
    );
    at = batch.end;
  }
  return lines;
};

describe('EventLog', () => {
  it.each<[string, LoggedEvent]>([
    ['a value', { type: 'value', at: -Infinity, json: '0' }],
    ['an event', opened(Infinity)],
    ['a watermark', watermark(NaN)],
    ['the end of a gap', gapOf(1, Infinity)],
    ['the begin of a gap', { ...gapOf(1, 2), from: NaN }],
    ['the length of a gap', { ...gapOf(1, 2), durationMs: NaN }],
    ['a frame', frame('a', NaN)],
  ])('throws for a time that JSON does not have, and stays unchanged: %s', (_what, event) => {
    const log = logOf({}, ['before']);
    const { newest } = log;
    expect(() => log.append(event)).toThrow(TypeError);
    expect([log.newest, log.size]).toEqual([newest, 1]);
    expect(log.watermarkAt(newest)).toBe(1_000_000);
    log.append(frame('after'));
    expect(readFrom(log, log.oldest)).toEqual(['before', 'after']);
  });

  it('uses the watermarks of a source, and does not store them', () => {
    const log = new EventLog(roomy, () => 100);
    for (const event of [opened(10), watermark(12), frame('a', 30), watermark(40), frame('b', 41)]) log.append(event);
    expect([log.size, range(0, 3).map((offset) => log.watermarkAt(log.positionAt(offset)!))]).toEqual([
      3,
      [-Infinity, 10, 12, 40],
    ]);
    expect([log.timeNow, log.read(log.oldest)?.watermark]).toEqual([40, 40]);
  });

  it.each([
    ['a connection to a relay that failed', relayError({ code: 'relay-stalled', endedAt: 40 })],
    ['an outage of its feed', lost(40)],
  ])('has no time of the clock after %s as its first event: older ones may follow', (_what, failure) => {
    let now = 50;
    const log = new EventLog(roomy, () => now);
    log.append({ ...disconnected(50), failure });
    now = 80;
    expect(log.watermarkAt(log.newest)).toBe(50);
    log.append(opened(60));
    expect(log.watermarkAt(log.newest)).toBe(80);
  });

  it('stores the newest events within both limits, and returns all of them from any stored position on', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: character, maxLength: 40 }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 1, max: 6_000 }),
        (payloads, capacity, capacityBytes) => {
          const log = logOf({ capacity, capacityBytes }, payloads);
          expect(log.size).toBeLessThanOrEqual(capacity);
          expect(log.bytes).toBeLessThanOrEqual(capacityBytes);
          expect(log.newest).toMatchObject({ offset: payloads.length, frames: payloads.length });
          expect(log.oldest.offset).toBe(payloads.length - log.size);
          for (const offset of range(0, payloads.length)) {
            const position = log.positionAt(offset);
            expect(position === undefined).toBe(offset < log.oldest.offset);
            if (position !== undefined) expect(readFrom(log, position)).toEqual(payloads.slice(offset));
          }
        },
      ),
      { numRuns: cases(100) },
    );
  });

  it('returns batches of 64 KiB of text, plus at most one event, which may be larger than that', () => {
    const payloads = [...range(1, 400).map((n) => String(n).padEnd(1_000)), 'x'.repeat(1_000_000), 'b'];
    const log = logOf({}, payloads);
    const sizes: number[] = [];
    for (let at = log.oldest, batch = log.read(at); batch !== undefined; batch = log.read(at)) {
      sizes.push(linesOf(batch).length);
      at = batch.end;
    }
    expect(sizes.length).toBeGreaterThan(5);
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(64 * 1024);
    for (const size of sizes.slice(0, -2)) expect(size).toBeLessThan(64 * 1024 + 1_200);
    expect(readFrom(log, log.oldest)).toEqual(payloads);
  });
});

describe('the line of a frame in a log', () => {
  it('is what writeFrame returns, whatever its bytes', () => {
    const anyBytes = fc.oneof(
      fc.uint8Array(),
      fc.string({ unit: character }).map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(anyBytes, fc.boolean(), (bytes, isBinary) => {
        const log = logOf({}, ['before']);
        const { newest } = log;
        const frame = new Frame('market', Buffer.from(bytes), isBinary, 1_000_000, 1);
        log.append(frame);
        expect(linesOf(log.read(newest))).toBe(writeFrame(frame));
      }),
      { numRuns: cases(200) },
    );
  });
});

describe('a log that is full', () => {
  it('never changes what a slow page still reads, whatever the lengths of lines', () => {
    const log = new EventLog({ ...roomy, capacity: 20 }, () => 5);
    const payloads = range(1, 300).map((n) => String(n).padEnd(n % 50 === 0 ? 300_000 : 9_000));
    const messages = payloads.map((payload, n) => {
      const { newest } = log;
      log.append(frame(payload));
      const { fields } = log.read(newest)!;
      // Twice: only the first one can end behind its line.
      return [log.memory.join(fields, `id: ${n}`), log.memory.join(fields, `id: ${n}`)];
    });
    expect(readFrom(log, log.oldest)).toEqual(payloads.slice(-20));
    messages.forEach((copies, n) => {
      const expected = `data: ${writeFrame(frame(payloads[n]!))}\nid: ${n}`;
      expect(copies.map(String)).toEqual([expected, expected]);
    });
    const [first, second] = messages[0]!;
    expect(first!.buffer).not.toBe(second!.buffer);
  });

  const filled = (bounds: Partial<LogBounds>, texts: readonly string[]): EventLog => {
    const log = new EventLog({ ...roomy, ...bounds }, () => 5);
    for (const text of texts) log.append({ type: 'value', at: 5, json: JSON.stringify(text) });
    return log;
  };
  const empty = filled({}, ['']).bytes;

  it.each([
    [0, 4],
    [1, 4],
    [2, 3],
    [5, 3],
    [6, 2],
    [100, 1],
  ])('begins a replay of at most %d bytes of UTF-8 at position %d', (bytes, offset) => {
    // The first line is removed. The others have 2, 4 and 2 bytes more than an empty text.
    const maxReplayBytes = bytes + (4 - offset) * empty;
    expect(filled({ capacity: 3, maxReplayBytes }, ['xx', 'aa', 'éé', 'bb']).replayStart().offset).toBe(offset);
  });
});

describe('a log whose frames wait until it is read', () => {
  const big = 40_000;
  const eventsAt = (now: number): readonly LoggedEvent[] => [
    ...[frame('a', now - 3), frame('b', now), frame('x'.repeat(big), now), frame('c', now, 2)],
    ...[opened(now), disconnected(now), watermark(now - 1), gapOf(now - 5, now)],
    { type: 'value', at: now, json: '1' },
  ];
  const step = fc.tuple(fc.nat(9), fc.constantFrom(...eventsAt(0).keys()));
  const firstRead = fc.constantFrom<(log: EventLog) => number>(
    (log) => log.bytes,
    (log) => log.size,
    (log) => log.replayStart().offset,
    (log) => log.positionUntil(startOf('a', 1_100))?.offset ?? -1,
  );

  it('has the same positions and lines as one that is read after each event', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 200 }),
        firstRead,
        (steps, capacity, read) => {
          const [waiting, current] = [false, true].map((isRead) => {
            let now = 1_000;
            const log = new EventLog({ capacity, capacityBytes: 3 * big, maxReplayBytes: 2 * big }, () => now);
            for (const [ms, kind] of steps) {
              now += ms;
              log.append(eventsAt(now)[kind] as LoggedEvent, { ...startOf('a', now), frames: now });
              if (isRead) read(log);
            }
            const first = read(log);
            const positions = range(log.oldest.offset, log.newest.offset).map(
              (offset) => log.positionAt(offset) as Checkpoint,
            );
            const facts = positions.map(({ offset, frames, at, complete, watermark, shared, state }) => {
              return { offset, frames, at, complete, watermark, shared, open: state.open, events: state.events.length };
            });
            const lines = positions.map((position) => log.read(position, 0)).map((batch) => batch && linesOf(batch));
            return { first, facts, lines, bytes: log.bytes, now: log.timeNow };
          });
          expect(waiting).toEqual(current);
        },
      ),
      { numRuns: cases(100) },
    );
  });
});

describe('a log whose clock may be set back', () => {
  it('finds positions by time like a scan over all events, also after the oldest events were removed', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 40 }), fc.integer({ min: 1, max: 50 }), (times, capacity) => {
        const log = new EventLog({ ...roomy, capacity }, () => 5);
        for (const time of times) log.append({ type: 'value', at: time, json: '0' });
        const stored = times.map((time, n) => ({ offset: n + 1, time })).slice(-capacity);
        for (const at of range(0, 21)) {
          const before = stored.findLast(({ time }) => time <= at)?.offset;
          expect(log.positionAfter(at).offset).toBe(before ?? log.oldest.offset);
          const after = stored.filter(({ offset }) => offset > log.oldest.offset + at).map(({ time }) => time);
          expect(log.earliestAfter(log.oldest.offset + at)).toBe(Math.min(...after));
        }
      }),
      { numRuns: cases(100) },
    );
  });

  // 1,000 pages that come from another relay make 1,000 searches.
  it('finds them in a few steps, however long the log is', () => {
    const log = new EventLog({ ...roomy, capacity: 50_000 }, () => 5);
    for (const at of range(1, 60_000)) log.append({ type: 'value', at, json: '0' });
    const steps = jest.spyOn(Ring.prototype, 'at');
    expect(log.positionAfter(12_345).offset).toBe(12_345);
    expect(log.earliestAfter(12_345)).toBe(12_346);
    expect(steps.mock.calls.length).toBeLessThan(40);
    steps.mockRestore();
  });
});
