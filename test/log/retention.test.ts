import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Clocks, isBelieved, looked, Retention } from '../../src/log/retention.js';
import type { Machine } from '../../src/log/segments.js';
import { folderDefaults, type FolderSettings } from '../../src/log/options.js';
import { path, segments, startWriter, write } from './support.js';
import { feedLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { waitFor } from '../support/wait-for.js';

const day = 86_400_000;
const start = 1_800_000_000_000;
const minute = 60_000;

describe('a clock', () => {
  /** Looks at a clock once a minute for as long as it is wrong by these ms. */
  const after = (...wrongMs: readonly number[]): boolean => {
    let clocks: Clocks | undefined;
    for (const [n, wrong] of wrongMs.entries()) clocks = looked(clocks, start + n * minute + wrong, 7 + n * minute);
    return isBelieved(clocks!, 7 * day);
  };

  it('is believed sooner for a short age: what was written before the jump is too old by any clock', () => {
    const jumped = looked(looked(undefined, start, 0), start + 30 * day, 10);
    const believed = (ms: number) => isBelieved(looked(jumped, start + 30 * day + ms, 10 + ms), 2_000);
    expect([believed(1_999), believed(2_000)]).toEqual([false, true]);
  });

  it.each<[string, readonly number[], boolean]>([
    ['not at the first look', [0], false],
    ['after a minute', [0, 0], true],
    ['not while it is ahead', [0, 0, 30 * day], false],
    ['not once it is back', [0, 0, 30 * day, 0], false],
    ['a minute after it is back', [0, 0, 30 * day, 0, 0], true],
    ['not while it is behind', [0, 0, -30 * day], false],
    ['when it has stayed where it jumped to', [0, 0, 30 * day, 30 * day], true],
    ['while it drifts', [0, 400, 800, 1_200], true],
    ['never while it jumps at each look', [0, day, 2 * day, 3 * day], false],
  ])('is believed %s', (_when, wrongMs, isTrue) => expect(after(...wrongMs)).toBe(isTrue));
});

describe('retention by age', () => {
  /** A log that keeps seven days, and the clocks that its retention goes by. */
  const keeps = (more: Partial<FolderSettings> = {}) => {
    const time = { wall: start, monotonic: 0 };
    const machine = {
      disk: fs,
      now: () => time.wall,
      monotonic: () => time.monotonic,
      gzip: (bytes: Buffer, end: (error: null, compressed: Buffer) => void) => end(null, gzipSync(bytes)),
      warn: (text: string) => {
        throw new Error(text);
      },
    } as unknown as Machine;
    const retention = new Retention(path(), { ...folderDefaults, maxAgeMs: 7 * day, ...more }, machine);
    const pass = (ms: number) => {
      time.wall += ms;
      time.monotonic += ms;
    };
    /** Passes some time, with a look each minute, at first. */
    const run = (ms: number) => {
      pass(ms - minute);
      retention.tidy();
      pass(minute);
      retention.tidy();
    };
    return { time, retention, pass, run };
  };
  /** Writes segments of one frame each, at these times in days before `start`. */
  const segmentsAt = async (...days: readonly number[]) => {
    const frames = days.map((at, n) => new Frame('market', Buffer.from(`${n}`), false, start - at * day, 1));
    await write(frames, { segmentBytes: 1 });
    expect(segments()).toHaveLength(days.length);
  };
  const left = () => segments().map((each) => Number(/\d+/.exec(basename(each))));

  it('removes nothing at the first look, and what is too old a minute later, by the times of its records', async () => {
    await segmentsAt(30, 20, 8, 6, 1, 0);
    // What the files say is wrong: it is that of a copy, or of a clock that was wrong.
    for (const each of segments()) fs.utimesSync(each, start / 500, start / 500);
    const { retention, pass } = keeps();
    retention.tidy();
    expect(left()).toHaveLength(6);
    pass(minute);
    retention.tidy();
    // The end of a segment is the header of the next one: the third record is the last one that is older.
    expect(left()).toEqual([3, 4, 5]);
  });

  // Each step sets the clock, if it does, then passes time, and says what is left.
  it.each<[string, days: readonly number[], ...steps: (readonly [setMs: number, ms: number, left: number[]])[]]>([
    [
      'believes a jump that stays',
      [6.5, 5, 4, 3, 0],
      [0, 2 * minute, [0, 1, 2, 3, 4]],
      [2.5 * day, 2 * minute, [2, 3, 4]],
    ],
    [
      'goes by the other records if some were stored while the clock was 30 days ahead',
      [6, -24, 5, 4, 3, -23, 1, 0],
      [0, 2 * minute, [0, 1, 2, 3, 4, 5, 6, 7]],
      [0, 1.5 * day, [1, 2, 3, 4, 5, 6, 7]],
      [0, 2 * day, [3, 4, 5, 6, 7]],
    ],
    [
      'is late by as much as a clock was ahead, if that time has passed since, and never early',
      [9, 6, 8, 7.5, 0],
      [0, 2 * minute, [1, 2, 3, 4]],
      [0, day, [4]],
    ],
  ])('%s', async (_title, days, ...steps) => {
    await segmentsAt(...days);
    const { time, run } = keeps();
    for (const [setMs, ms, expected] of steps) {
      time.wall += setMs;
      run(ms);
      expect(left()).toEqual(expected);
    }
  });

  it('removes nothing because the clock is 30 days ahead for a moment, and goes on when it is right again', async () => {
    await segmentsAt(6.5, 5, 4, 3, 0);
    const { time, retention, run, pass } = keeps();
    run(2 * minute);
    for (const jump of [30 * day, -30 * day]) {
      time.wall += jump;
      retention.tidy();
      pass(50);
      retention.tidy();
    }
    expect(left()).toHaveLength(5);
    run(day);
    expect(left()).toEqual([1, 2, 3, 4]);
  });

  it('goes by the same times when it has compressed a segment', async () => {
    await segmentsAt(8, 6.5, 5, 0);
    const { retention, run } = keeps({ compress: true });
    retention.tidy();
    expect(segments().filter((each) => each.endsWith('.gz'))).toHaveLength(3);
    run(2 * minute);
    expect(left()).toEqual([1, 2, 3]);
    run(day);
    expect(left()).toEqual([2, 3]);
  });

  it('is not stopped by a segment that is damaged', async () => {
    await segmentsAt(30, 20, 10, 9, 0);
    const [, second, third] = segments();
    fs.writeFileSync(`${second}.gz`, 'damaged');
    fs.rmSync(second!);
    fs.writeFileSync(third!, 'damaged\n');
    const { run } = keeps();
    run(2 * minute);
    expect(left()).toEqual([4]);
  });

  it('removes nothing when a log is opened', async () => {
    await segmentsAt(3_000, 2_000, 1_000);
    const { send, end } = startWriter(feedLog(path(), { maxAgeMs: day, maxBytes: 4_000 }));
    expect(left()).toEqual([0, 1, 2]);
    send(new Frame('market', Buffer.alloc(3_000, 'x'), false, start, 1));
    // The limit in bytes holds from the first record on.
    await waitFor(() => left().length === 2);
    await end();
  });
});
