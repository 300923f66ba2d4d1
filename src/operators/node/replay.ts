import { asyncScheduler, noop, type Observable, type SchedulerLike, using } from 'rxjs';
import { aFunction, objectWith, type Rule, validated } from '../../protocol/validate.js';
import { absolutePath, checkPath } from './recording/recording-path.js';
import type { Replayed } from '../items/item.js';
import { createRecordingReader, type RecordingReader } from './recording/recording-reader.js';
import { type ReplayProgress, replayRounds, type ReplaySettings } from './recording/replay-rounds.js';

/** The options of {@link replay$}. */
export interface ReplayOptions {
  /**
   * The speed: 1 keeps the recorded intervals, 10 is ten times as fast, `Infinity` is as fast as possible.
   *
   * @defaultValue 1
   */
  readonly speed?: number | undefined;
  /**
   * Where to begin, in bytes. The `offset` of a replayed frame or gap continues right after it.
   *
   * @defaultValue 0: at the beginning
   */
  readonly offset?: number | undefined;
  /** Called when the recording is open, after each chunk of it, and at the end if the last line is torn. */
  readonly onProgress?: ((progress: ReplayProgress) => void) | undefined;
  /**
   * The scheduler of the waits.
   *
   * @defaultValue `asyncScheduler`
   */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Replays the frames and gaps of a recording, with the recorded intervals.
 *
 * Cold: each subscription reads the files again, including the continuations that {@link recordTo} creates with
 * `maxFileBytes`. Emits a {@link Frame} for each recorded frame, with the recorded bytes, metadata and `receivedAt`,
 * and each gap with its `TradeFeedError`. Each of them has an `offset`, from which a later replay continues. Skips
 * empty lines and lines of other types, which `rx-trade-feed listen --json` writes. Completes at the end. Skips a last
 * line that a crash has torn, and reports it to `onProgress` as `torn`. Errors with a {@link RecordingError} when a
 * file cannot be read or is not a recording, the offset is inside a line, or a line before the last one is invalid.
 *
 * Emits the first event immediately. Each other event follows after the recorded time since the first event, divided by
 * `speed`. A recorded clock that was set back adds no delay. With `speed: Infinity` it emits all events of a chunk,
 * reads the next chunk, and uses no timer.
 *
 * Stores one chunk of 256 KiB, or one line if that is longer; never a complete file.
 * ```ts
 * // recorded at, in ms    0     10    20    30
 * // lines                 f     f           g
 * // replay$()             f-----f-----------(g|)
 * // { speed: 2 }          f--f-----(g|)
 * // { speed: Infinity }   (ffg|)
 * ```
 *
 * @param path - the file, as in {@link recordTo}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { replay$ } from 'rx-trade-feed';
 *
 * replay$('feed.ndjson', { speed: 10 }).subscribe((event) => {
 *   console.log(event.type === 'frame' ? event.text() : `${event.durationMs} ms are missing`);
 * });
 * ```
 */
export const replay$ = (path: string, options: ReplayOptions = {}): Observable<Replayed> => {
  checkPath(path);
  const settings: ReplaySettings = { ...defaults, ...validated(options, rules) };
  return using(
    () => createRecordingReader(absolutePath(path), settings.offset),
    (reader) => replayRounds(reader as RecordingReader, settings),
  );
};

const defaults: ReplaySettings = { speed: 1, offset: 0, onProgress: noop, scheduler: asyncScheduler };

const rules = {
  speed: {
    allowed: 'a number above 0, or Infinity',
    is: (value) => typeof value === 'number' && value > 0,
  },
  offset: { allowed: 'a number of bytes, 0 or more', is: (value) => Number.isSafeInteger(value) && Number(value) >= 0 },
  onProgress: aFunction,
  scheduler: objectWith('schedule', 'a scheduler of RxJS'),
} satisfies Readonly<Record<string, Rule>>;
