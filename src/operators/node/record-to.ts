import { defer, finalize, type Observable, Subject, takeUntil, tap, throwError } from 'rxjs';
import { debug } from '../../feed/diagnostics.js';
import type { ClusterLifecycleEvent } from '../../protocol/event.js';
import { createFailure, TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../protocol/frame.js';
import { recordingPaused } from '../../protocol/failures/classify.js';
import { afterEvent, afterItem, noFeed, stoppedAt } from '../../protocol/feed-state.js';
import { printable } from '../../protocol/printable.js';
import { type Rule, validated } from '../../protocol/validate.js';
import { Decoded, isLifecycle, isWatermark, timeOf } from '../items/item.js';
import type { RecordingError } from './recording/recording-error.js';
import { absolutePath, checkPath } from './recording/recording-path.js';
import { createRecordingWriter, type RecordingWriter } from './recording/recording-writer.js';

/** The options of {@link recordTo}. */
export interface RecordOptions {
  /**
   * The largest size of a file, in bytes. A line that would make the file larger is written to the next file:
   * `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … A line that is longer than this has a separate file. Files are
   * never removed or renamed.
   *
   * @defaultValue `Infinity`: one file
   */
  readonly maxFileBytes?: number | undefined;
  /**
   * How many bytes may wait for a slow disk. When more bytes wait, the stream waits for the disk.
   *
   * @defaultValue 16 777 216 (16 MiB)
   */
  readonly maxWaitingBytes?: number | undefined;
  /**
   * What happens when the file cannot be written any more, for example because the disk is full. `'error'` ends the
   * stream with the {@link RecordingError}. A function receives the error, and the stream continues without the
   * recording.
   *
   * @defaultValue `'error'`
   */
  readonly onError?: 'error' | ((error: RecordingError) => void) | undefined;
}

/**
 * Records frames and gaps to a file, and forwards all events unchanged.
 *
 * Each line is one JSON object, as `rx-trade-feed listen --json` writes it; {@link replay$} reads the file. A
 * {@link Decoded} is recorded as its frame; other events and values are forwarded but not recorded. An existing
 * recording is appended to: first a line that a crash has torn is removed, and the time in between is recorded as a
 * gap. A new file without any line is removed at the end.
 *
 * Emits, completes and errors like the source. On subscription, a relative path is resolved and the file is opened
 * before the source is subscribed to. The file is complete when the source completes or errors, when the subscriber
 * unsubscribes, or when the process exits normally; a signal without a handler is not a normal exit. Errors with a
 * {@link RecordingError} when the file cannot be written, is not a recording, is in use by another recorder, or is
 * changed by another program. The option `onError` handles a failure during the recording. A failure after the end of
 * the subscription is reported to `config.onUnhandledError` of RxJS.
 *
 * The file is locked with an advisory lock of the operating system, which is released with the recording, its worker
 * thread and its process. Where such locks are not available, the process emits one warning with the code
 * `RX_TRADE_FEED_NO_LOCK`.
 *
 * Lines are written asynchronously, with one write in progress at a time. At most `maxWaitingBytes` and one line wait
 * in memory. When more wait, when a file is full, and at the end, the operator writes synchronously. It never drops a
 * frame or a gap.
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
  const { onError, ...limits } = { ...defaults, ...validated(options, rules) };
  return <E>(source: Observable<E>) =>
    defer(() => {
      const failed = new Subject<never>();
      let report = (error: unknown): void => failed.error(error);
      const writer = openWriter(path, limits, (error) => {
        // `onError` may keep the failure to itself.
        writeDebug(error);
        try {
          if (onError === 'error') throw error;
          onError(error);
        } catch (thrown) {
          report(thrown);
        }
      });
      const end = (): void => {
        // The stream has no subscriber any more, so RxJS reports a failure as unhandled.
        report = (error) => throwError(() => error).subscribe();
        writer.end();
      };
      return source.pipe(
        tap<E>({ next: eventRecorder(writer), error: end, complete: () => writer.end() }),
        takeUntil(failed),
        finalize(end),
      );
    });
};

const openWriter: typeof createRecordingWriter = (path, ...others) => {
  try {
    return createRecordingWriter(absolutePath(path), ...others);
  } catch (error) {
    writeDebug(error as Error);
    throw error;
  }
};

const writeDebug = ({ message }: Error): void => debug.write(`recordTo: ${printable(message)}`);

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

/** Creates a function that records an event. Its state belongs to one subscription. */
const eventRecorder = (writer: RecordingWriter): ((event: unknown) => void) => {
  let lastAt = writer.stoppedAt && Math.floor(writer.stoppedAt);
  let state = lastAt === undefined ? noFeed : stoppedAt(lastAt, pausedAt(lastAt));
  return (event) => {
    const frame = frameIn(event);
    if (frame !== undefined) state = afterItem(state, frame.receivedAt);
    else if (isFeedEvent(event)) state = afterEvent(state, event, lastAt);
    else return;
    if (!isWatermark(event)) lastAt = timeOf(event);
    for (const gap of state.gaps) writer.add(gap);
    if (frame !== undefined) writer.add(frame);
  };
};

const frameIn = (event: unknown): AnyFrame | undefined => {
  if (event instanceof Frame) return event as AnyFrame;
  return event instanceof Decoded ? (event.frame as AnyFrame) : undefined;
};

// A value of another library may have the type `gap`, too.
const isFeedEvent = (event: unknown): event is ClusterLifecycleEvent =>
  isLifecycle(event) && (!('failure' in event) || event.failure instanceof TradeFeedError);

/**
 * Returns the failure of the gap between two recordings. With this gap, a window over a replay is not marked complete.
 */
const pausedAt = (endedAt: number): TradeFeedError => createFailure(recordingPaused, { stage: 'stream', endedAt });
