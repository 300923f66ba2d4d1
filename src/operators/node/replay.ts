import { asyncScheduler, noop, type Observable, type SchedulerLike, using } from 'rxjs';
import { aFunction, objectWith, type Rule, validated } from '../../protocol/rules.js';
import { absolutePath, checkPath } from './recording-files.js';
import type { Replayed } from '../items/replayed.js';
import { recordingReader, type RecordingReader } from './recording-reader.js';
import { type ReplayProgress, replayRounds, type ReplaySettings } from './replay-rounds.js';

/** What {@link replay$} is told. */
export interface ReplayOptions {
  /**
   * How fast: 1 keeps the recorded spacing, 10 is ten times as fast, `Infinity` as fast as possible.
   *
   * @defaultValue 1
   */
  readonly speed?: number | undefined;
  /**
   * Where to begin, in bytes: the `offset` of a frame or gap of an earlier replay goes on right behind it.
   *
   * @defaultValue 0: at the beginning
   */
  readonly offset?: number | undefined;
  /** Called when the recording is open, after each piece of it that was replayed, and at the end when the last line is torn. */
  readonly onProgress?: ((progress: ReplayProgress) => void) | undefined;
  /**
   * What keeps the waits.
   *
   * @defaultValue `asyncScheduler`
   */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Replays the frames and gaps of a recording, with their recorded spacing.
 *
 * Cold: each subscription reads the files anew, those that {@link recordTo} has begun at a size in their order. Emits a {@link Frame} for each
 * recorded one, with the bytes, the metadata and the `receivedAt` of then, and each gap with its `TradeFeedError`; each has an `offset` to go
 * on from. Empty lines and those of other types, which `rx-trade-feed listen --json` writes, are skipped. Completes at the end. A last line that a crash has torn
 * is left out, and `onProgress` reports it as `torn`. Errors with a {@link RecordingError} when a file cannot be read, the offset is inside a line, or a line that others follow
 * is not readable.
 *
 * The first event comes at once, each other one when as much time has gone by since then as was recorded between them, divided by
 * `speed`; a recorded clock that was set back adds nothing. As fast as possible it emits what it has read, reads on, and
 * waits for no timer.
 *
 * Holds one piece of 256 KiB, or one line if that is longer; never a whole file.
 *
 * ```ts
 * // recorded at, in ms    0     10    20    30
 * // lines                 f     f           g
 * // replay$()             f-----f-----------(g|)
 * // { speed: 2 }          f--f-----(g|)
 * // { speed: Infinity }   (ffg|)
 * ```
 *
 * @param path - the file, as given to {@link recordTo}
 * @param options - see {@link ReplayOptions}
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
    () => recordingReader(absolutePath(path), settings.offset),
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
