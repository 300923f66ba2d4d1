import { defer, finalize, type Observable, Subject, takeUntil, tap, throwError } from 'rxjs';
import type { LifecycleEvent } from '../../protocol/event.js';
import { recordingPaused } from '../../protocol/failures/client-meanings.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../protocol/frame.js';
import { createFailure } from '../../protocol/failures/meaning.js';
import { afterEvent, afterItem, noOutages, stoppedAt } from '../../protocol/outage.js';
import { type Rule, validated } from '../../protocol/rules.js';
import { Decoded } from '../stream/decoded.js';
import { isLifecycle, isWatermark, timeOf } from '../stream/item.js';
import type { RecordingError } from './recording-error.js';
import { absolutePath, checkPath } from './recording-files.js';
import { type RecordingWriter, recordingWriter } from './recording-writer.js';

/** What {@link recordTo} is told. */
export interface RecordOptions {
  /**
   * A line that would make a file larger goes into the next one, in bytes: `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … A
   * longer line has a file to itself. Nothing is removed or renamed.
   *
   * @defaultValue `Infinity`: one file
   */
  readonly maxFileBytes?: number | undefined;
  /**
   * How much may wait for a slow disk, in bytes; beyond it the stream waits for the disk.
   *
   * @defaultValue 16 777 216 (16 MiB)
   */
  readonly maxWaitingBytes?: number | undefined;
  /**
   * What happens when the file cannot be written any more, a full disk say: `'error'` ends the stream with the
   * {@link RecordingError}; a function is told of it, and the stream goes on without being recorded.
   *
   * @defaultValue `'error'`
   */
  readonly onError?: 'error' | ((error: RecordingError) => void) | undefined;
}

/**
 * Records the frames and gaps that pass to a file, and passes everything on unchanged.
 *
 * One JSON object a line, as `rx-trade-feed listen --json` writes them; {@link replay$} gives them back. A {@link Decoded} is recorded as
 * its frame; other events and values are passed on and not written. An existing recording is appended to: a line that a crash has torn is
 * cut off first, and the time between is recorded as a gap. When no line is written, a file that was not there before is removed.
 *
 * Emits, completes and errors as its source. The file is opened when somebody subscribes, before the source is; a relative path is resolved
 * then. The file is complete when the source has completed or errored, the consumer has left, or the process exits normally, which a signal
 * without a handler is not. Errors with a {@link RecordingError} when the file cannot be written, is no recording, another recorder
 * writes to it, or another program changes it; see `onError` for a failure on the way. One that comes after the end of the subscription
 * goes to RxJS's unhandled-error hook.
 *
 * The file is locked with an advisory lock of the operating system, which ends with the recording, its worker thread and its process. Where
 * there are no such locks, the process emits a warning once, with the code `RX_TRADE_FEED_NO_LOCK`.
 *
 * Lines are handed to the system as they come, in one write at a time. Holds what waits for that: at most `maxWaitingBytes` and a line;
 * beyond it, at a rotation, and at the end it writes synchronously. A recording is never thinned out.
 *
 * ```ts
 * // source      o-f-f-g-f-|
 * // recordTo()
 * // result      o-f-f-g-f-|
 * // file          f f g f
 * ```
 *
 * @param path - the file; its folder must exist
 * @param options - see {@link RecordOptions}; sizes in bytes
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { recordTo, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(recordTo('feed.ndjson', { maxFileBytes: 100_000_000 }))
 *   .subscribe((event) => console.log(event.type));
 * ```
 */
export const recordTo = (path: string, options: RecordOptions = {}): (<E>(source: Observable<E>) => Observable<E>) => {
  checkPath(path);
  const { onError, ...bounds } = { ...defaults, ...validated(options, rules) };
  return <E>(source: Observable<E>) =>
    defer(() => {
      const failed = new Subject<never>();
      let tell = (error: unknown): void => failed.error(error);
      const writer = recordingWriter(absolutePath(path), bounds, (error) => {
        try {
          if (onError === 'error') throw error;
          onError(error);
        } catch (thrown) {
          tell(thrown);
        }
      });
      const leave = (): void => {
        // Nobody listens to the stream any more.
        tell = (error) => throwError(() => error).subscribe();
        writer.end();
      };
      return source.pipe(
        tap<E>({ next: recording(writer), error: leave, complete: () => writer.end() }),
        takeUntil(failed),
        finalize(leave),
      );
    });
};

const defaults = { maxFileBytes: Infinity, maxWaitingBytes: 16 * 1024 * 1024, onError: 'error' } as const;

const bytes: Rule = {
  allowed: 'a number of bytes, 1 or more',
  is: (value) => typeof value === 'number' && value >= 1,
};

const rules = {
  maxFileBytes: bytes,
  maxWaitingBytes: bytes,
  onError: { allowed: "'error' or a function", is: (value) => value === 'error' || typeof value === 'function' },
} satisfies Readonly<Record<string, Rule>>;

/** Creates the function that records each event: state of one subscription. */
const recording = (writer: RecordingWriter): ((event: unknown) => void) => {
  let heardAt = writer.stoppedAt && Math.floor(writer.stoppedAt);
  let outages = heardAt === undefined ? noOutages : stoppedAt(heardAt, pausedAt(heardAt));
  return (event) => {
    const frame = recordable(event);
    if (frame !== undefined) outages = afterItem(outages, frame.receivedAt);
    else if (isFeedEvent(event)) outages = afterEvent(outages, event, heardAt);
    else return;
    if (!isWatermark(event)) heardAt = timeOf(event);
    for (const gap of outages.gaps) writer.add(gap);
    if (frame !== undefined) writer.add(frame);
  };
};

const recordable = (event: unknown): AnyFrame | undefined => {
  if (event instanceof Frame) return event as AnyFrame;
  return event instanceof Decoded ? (event.frame as AnyFrame) : undefined;
};

// An item of another library may be called a gap too.
const isFeedEvent = (event: unknown): event is LifecycleEvent =>
  isLifecycle(event) && (!('failure' in event) || event.failure instanceof TradeFeedError);

/** The reason of the gap between two recordings: a window over a replay must not count across it. */
const pausedAt = (endedAt: number): TradeFeedError => createFailure(recordingPaused, { stage: 'stream', endedAt });
