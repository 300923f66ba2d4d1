import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Frame } from '../../src/protocol/frame.js';
import type { LoggedEvent } from '../../src/protocol/snapshot.js';
import { EventLog, type LogBounds } from '../../src/relay/event-log.js';
import type { Position } from '../../src/relay/log-entries.js';
import { publicEvent } from '../../src/relay/public-json.js';
import { disconnected, gapOf, opened, watermark } from '../operators/stream.js';
import { frame, range } from './support.js';
import { cases } from '../support/cases.js';

const roomy: LogBounds = { capacity: 1_000_000, capacityBytes: 1e9, maxReplayBytes: 1e9 };
const logOf = (bounds: Partial<LogBounds>, payloads: readonly (string | number)[]) => {
  const log = new EventLog({ ...roomy, ...bounds }, () => 5);
  for (const payload of payloads) log.append(frame(payload));
  return log;
};

/** Reads all payloads after a position. */
const readFrom = (log: EventLog, from: Position): string[] => {
  const lines: string[] = [];
  for (let at = from, batch = log.read(at); batch !== undefined; batch = log.read(at)) {
    lines.push(...batch.lines.split('\n').map((line) => (JSON.parse(line) as { data: string }).data));
    at = batch.end;
  }
  return lines;
};

describe('EventLog', () => {
  it('is empty at first', () => {
    const log = new EventLog(roomy, () => 5);
    expect(log.newest).toEqual({ seq: 0, frames: 0, at: 5, snapshot: [], watermark: -Infinity });
    expect([log.oldest, log.size, log.bytes]).toEqual([log.newest, 0, 0]);
    expect(log.read(log.newest)).toBeUndefined();
  });

  it('stores the number of events and frames, the time and the state of the feed at each position', () => {
    const log = new EventLog(roomy, () => 5);
    const events = [opened(10), frame('a', 11), disconnected(12), gapOf(12, 20)];
    for (const event of events) log.append(event);
    expect(range(0, 4).map((seq) => log.positionAt(seq))).toEqual([
      { seq: 0, frames: 0, at: 5, snapshot: [], watermark: -Infinity },
      expect.objectContaining({ seq: 1, frames: 0, at: 10, snapshot: [events[0]] }),
      expect.objectContaining({ seq: 2, frames: 1, at: 11, snapshot: [events[0]] }),
      expect.objectContaining({ seq: 3, frames: 1, at: 12, snapshot: [publicEvent(events[2]!)] }),
      expect.objectContaining({ seq: 4, frames: 1, at: 20, snapshot: [publicEvent(events[2]!)] }),
    ]);
    expect([log.positionAt(-1), log.positionAt(5), log.positionAt(1e15)]).toEqual([undefined, undefined, undefined]);
  });

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

  it('returns the watermark of each position: the time of the event, and the clock at the newest position', () => {
    let now = 20;
    const log = new EventLog(roomy, () => now);
    expect(log.watermarkAt(log.newest)).toBe(-Infinity);
    for (const event of [opened(20), frame('a', 20)]) log.append(event);
    now = 30;
    log.append(frame('b', 30));
    now = 45;
    expect(range(0, 3).map((seq) => log.watermarkAt(log.positionAt(seq)!))).toEqual([-Infinity, 20, 20, 45]);
    expect(log.read(log.oldest)?.watermark).toBe(45);
  });

  it('uses the watermarks of a source, and does not store them', () => {
    const log = new EventLog(roomy, () => 100);
    for (const event of [opened(10), watermark(12), frame('a', 30), watermark(40), frame('b', 41)]) log.append(event);
    expect([log.size, range(0, 3).map((seq) => log.watermarkAt(log.positionAt(seq)!))]).toEqual([
      3,
      [-Infinity, 10, 12, 40],
    ]);
    expect([log.joinedAt(100), log.read(log.oldest)?.watermark]).toEqual([40, 40]);
  });

  it('uses the time of the previous event for an event without a time', () => {
    const log = new EventLog(roomy, () => 5);
    log.append({ type: 'opened', feed: 'market', connection: 1 } as never);
    expect(log.newest.at).toBe(5);
  });

  it('stores the newest events within both limits, and returns all of them from any stored position on', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 40 }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 1, max: 6_000 }),
        (payloads, capacity, capacityBytes) => {
          const log = logOf({ capacity, capacityBytes }, payloads);
          expect(log.size).toBeLessThanOrEqual(capacity);
          expect(log.bytes).toBeLessThanOrEqual(capacityBytes);
          expect(log.newest).toMatchObject({ seq: payloads.length, frames: payloads.length });
          expect(log.oldest.seq).toBe(payloads.length - log.size);
          for (const seq of range(0, payloads.length)) {
            const position = log.positionAt(seq);
            expect(position === undefined).toBe(seq < log.oldest.seq);
            if (position !== undefined) expect(readFrom(log, position)).toEqual(payloads.slice(seq));
          }
        },
      ),
      { numRuns: cases(100) },
    );
  });

  it.each([
    ['abc', 1],
    ['é', 1],
    ['é\n', 1],
    ['Ā', 2],
    ['one character beyond Latin-1: 漢', 2],
    ['😀', 2],
  ])('counts the bytes of %j in memory: %d for each character', (text, each) => {
    const log = logOf({}, [text]);
    const line = `{"type":"frame","feed":"market","connection":1,"receivedAt":1000000,"isBinary":false,"encoding":"utf8","data":${JSON.stringify(text)}}`;
    expect(log.read(log.oldest)?.lines).toBe(line);
    expect(log.bytes).toBe(line.length * each);
  });

  it('removes an event at once that is larger than `capacityBytes`', () => {
    const log = logOf({ capacityBytes: 1_000 }, ['a', 'b', 'x'.repeat(1_000)]);
    expect([log.size, log.bytes, log.oldest.seq, log.oldest.frames]).toEqual([0, 0, 3, 3]);
    log.append(frame('c'));
    expect(readFrom(log, log.oldest)).toEqual(['c']);
  });

  it('returns the same batch for the same position', () => {
    const log = logOf({}, ['a', 'b']);
    const batch = log.read(log.oldest);
    expect(log.read(log.oldest)).toBe(batch);
    expect(log.read(log.positionAt(1)!)?.lines).not.toBe(batch?.lines);
    expect(log.read(log.oldest)?.lines.split('\n')).toHaveLength(2);
    log.append(frame('c'));
    expect(log.read(log.oldest)?.lines.split('\n')).toHaveLength(3);
  });

  it('returns batches of 64 KiB of text, plus at most one event', () => {
    const log = logOf(
      {},
      range(1, 400).map((n) => String(n).padEnd(1_000)),
    );
    const sizes: number[] = [];
    for (let at = log.oldest, batch = log.read(at); batch !== undefined; batch = log.read(at)) {
      sizes.push(batch.lines.length);
      at = batch.end;
    }
    expect(sizes.length).toBeGreaterThan(5);
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(64 * 1024);
    expect(Math.max(...sizes)).toBeLessThan(64 * 1024 + 1_200);
  });

  it('returns an event that is larger than that as one batch', () => {
    const log = logOf({}, ['a', 'x'.repeat(1_000_000), 'b']);
    expect(readFrom(log, log.oldest)).toEqual(['a', 'x'.repeat(1_000_000), 'b']);
  });

  it('refuses a frame with a time that is not a number', () => {
    const log = new EventLog(roomy, () => 5);
    expect(() => log.append(new Frame('market', Buffer.from('x'), false, NaN, 1))).toThrow(TypeError);
    expect([log.size, log.newest.seq]).toEqual([0, 0]);
  });

  it('does not grow once it is full', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const log = new EventLog({ capacity: 500, capacityBytes: 5e5, maxReplayBytes: 5e5 }, () => 5);
    const heap = (): number => {
      for (const n of range(1, 2_000)) log.append(frame(String(n).padEnd(500)));
      gc();
      return process.memoryUsage().heapUsed;
    };
    heap();
    const before = heap();
    for (let round = 0; round < 3; round += 1) heap();
    expect(heap() - before).toBeLessThan(4e5);
    expect(log.size).toBeLessThanOrEqual(500);
  });
});
