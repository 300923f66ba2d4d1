import { describe, expect, it } from '@jest/globals';
import { map, noop, type Observable, of, type SchedulerAction, type SchedulerLike, throwError } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import type { ReplayProgress } from '../../../../src/index.js';
import { frameLine, gapLine } from '../../../../src/operators/node/recording/recording-line.js';
import {
  type LineSource,
  replayRounds,
  type ReplaySettings,
} from '../../../../src/operators/node/recording/replay-rounds.js';
import { frameAt, gapBetween } from '../support/recorded.js';

type Run = Parameters<Parameters<TestScheduler['run']>[0]>[0];

const run = (test: (helpers: Run, scheduler: TestScheduler) => void): void => {
  const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
  scheduler.run((helpers) => test(helpers, scheduler));
};

/** A recording in chunks. Each chunk is a list of times; a negative time is a gap. */
const sourceOf = (...pieces: readonly (readonly number[])[]): LineSource & { readonly reads: () => number } => {
  let offset = 0;
  let reads = 0;
  const all = pieces.map((times) => {
    const text = times.map((ms) => (ms < 0 ? gapLine(gapBetween(0, -ms)) : frameLine(frameAt(ms)))).join('');
    const lines = { bytes: Buffer.from(text), path: 'f', fileOffset: offset, offset };
    offset += text.length;
    return lines;
  });
  return { totalBytes: offset, tornBytes: 0, read: () => of(all[reads++]), reads: () => reads };
};

const replay = (source: LineSource, settings: Partial<ReplaySettings>): Observable<string> =>
  replayRounds(source, { speed: 1, offset: 0, onProgress: noop, scheduler: new TestScheduler(noop), ...settings }).pipe(
    map((event) => (event.type === 'gap' ? 'g' : 'f')),
  );

/** A scheduler that stores each wait and lengthens it. */
const spiedScheduler = (scheduler: TestScheduler, tell: (delayMs: number) => void, moreMs = 0): SchedulerLike => ({
  now: () => scheduler.now(),
  schedule: <T>(work: (this: SchedulerAction<T>, state: T) => void, delayMs: number, state: T) => {
    tell(delayMs);
    return scheduler.schedule(work as Parameters<typeof scheduler.schedule<T>>[0], delayMs + moreMs, state);
  },
});

describe('a replay', () => {
  it('keeps the recorded intervals; a gap is due at its end', () => {
    run(({ expectObservable }, scheduler) => {
      const source = sourceOf([1_000, 1_002, -1_005, 1_006]);
      expectObservable(replay(source, { scheduler })).toBe('f-f--g(f|)');
    });
  });

  it('divides the intervals by the speed', () => {
    run(({ expectObservable }, scheduler) => {
      const times = [0, 10, 30, 35];
      expectObservable(replay(sourceOf(times), { scheduler, speed: 5 })).toBe('f-f---f(f|)');
      expectObservable(replay(sourceOf(times), { scheduler, speed: 0.5 })).toBe('f 19ms f 39ms f 9ms (f|)');
    });
  });

  it('does not wait when the recorded clock was set back, and keeps the intervals from there', () => {
    run(({ expectObservable }, scheduler) => {
      const source = sourceOf([5_000, 5_002, 1_000, 1_008]);
      expectObservable(replay(source, { scheduler })).toBe('f-(ff)----(f|)');
    });
  });

  it('waits for a time that is too long for one timer', () => {
    run(({ expectObservable, flush }, scheduler) => {
      const days = 30 * 86_400_000;
      const waits: number[] = [];
      const spied = spiedScheduler(scheduler, (delayMs) => waits.push(delayMs));
      expectObservable(replay(sourceOf([0, days]), { scheduler: spied })).toBe(`f ${days - 1}ms (f|)`);
      flush();
      expect(waits).toEqual([2 ** 31 - 1, days - 2 ** 31 + 1]);
    });
  });

  it('errors when its source errors, and for an invalid line', () => {
    const failure = new Error('of the disk');
    run(({ expectObservable }, scheduler) => {
      const failing: LineSource = { totalBytes: 0, tornBytes: 0, read: () => throwError(() => failure) };
      expectObservable(replay(failing, { scheduler })).toBe('#', undefined, failure);
    });
    const bytes = Buffer.from(`${frameLine(frameAt(1))}{"secret\n${frameLine(frameAt(2))}`);
    let reads = 0;
    const source: LineSource = {
      totalBytes: 0,
      tornBytes: 0,
      read: () => of(reads++ === 0 ? { bytes, path: 'f', fileOffset: 0, offset: 0 } : undefined),
    };
    const seen: unknown[] = [];
    replay(source, { speed: Infinity }).subscribe({ next: (event) => seen.push(event), error: (e) => seen.push(e) });
    expect(seen).toEqual(['f', expect.objectContaining({ name: 'RecordingError' })]);
    expect(String(seen[1])).not.toContain('secret');
  });
});

describe('the progress of a replay', () => {
  const progressOf = (source: LineSource, settings: Partial<ReplaySettings> = {}): ReplayProgress[] => {
    const told: ReplayProgress[] = [];
    replay(source, { speed: Infinity, onProgress: (progress) => told.push(progress), ...settings }).subscribe();
    return told;
  };
  const frame = frameLine(frameAt(1)).length;

  it('is reported when the source is open and after each chunk', () => {
    const source = sourceOf([1, 2], [-3, 4]);
    const { totalBytes } = source;
    expect(progressOf(source)).toEqual([
      { bytes: 0, totalBytes, frames: 0, at: undefined, torn: undefined },
      { bytes: frame * 2, totalBytes, frames: 2, at: 2, torn: undefined },
      { bytes: totalBytes, totalBytes, frames: 3, at: 4, torn: undefined },
    ]);
  });
});
