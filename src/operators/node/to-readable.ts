import { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { isError } from '../../protocol/type-guards.js';
import { aBoolean, validated } from '../../protocol/validate.js';
import { BoundedReader } from '../bounded/bounded-reader.js';
import { type SourceError, withOwnBytes } from '../items/item.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from '../bounded/bounded-queue.js';

/** The options of {@link toReadable}. */
export interface ReadableOptions<T = unknown> extends BoundOptions<T> {
  /**
   * `true`: any value can be a chunk. `false`: a byte stream, which takes byte arrays and strings. @defaultValue
   * `true`
   */
  readonly objectMode?: boolean | undefined;
}

/**
 * Converts an Observable to a Node stream, and limits how many values wait for its reader.
 *
 * The stream subscribes when it's first read, and unsubscribes when it's destroyed. Values that arrive while the reader
 * is busy wait in order; beyond `capacity` values or `capacityBytes`, values are dropped. The reader gets the waiting
 * values first. Then the stream ends if the source completed, and is destroyed with the error if the source errored. An
 * {@link OverflowError} with `overflow: 'error'` destroys it in the same way, and so does an error that `onDrop`
 * throws.
 *
 * `onDrop` is called as in {@link mergeMapBounded}. Memory: `capacity` values of at most `capacityBytes` in total, and
 * one chunk in the stream. `null` can't be a chunk.
 * ```ts
 * // source                        --a-b-c-d-------|
 * // toReadable({ capacity: 1 })   --a------d------|
 * // While the reader is busy with a, c replaces b, and d replaces c.
 * ```
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createWriteStream } from 'node:fs';
 * import { pipeline } from 'node:stream/promises';
 * import { map, take } from 'rxjs';
 * import { toReadable, tradeFeed$ } from 'rx-trade-feed';
 *
 * const lines$ = tradeFeed$('market').pipe(
 *   take(10),
 *   map((frame) => `${frame.text()}\n`),
 * );
 * await pipeline(
 *   toReadable({ objectMode: false })(lines$),
 *   createWriteStream('frames.ndjson'),
 * );
 * console.log('10 lines written');
 * ```
 */
export function toReadable(
  options: ReadableOptions<Uint8Array | string> & { readonly objectMode: false },
): (source: Observable<Uint8Array | string>) => Readable;
export function toReadable<B = unknown>(options?: ReadableOptions<B>): <T extends B>(source: Observable<T>) => Readable;
export function toReadable(options: ReadableOptions<never> = {}): (source: Observable<never>) => Readable {
  const settings = {
    ...boundDefaults,
    objectMode: true,
    ...validated(options, { ...boundRules, objectMode: aBoolean }),
  };
  return (source) => readable(source, settings);
}

// `Readable.from` would take several microtasks per chunk.
const readable = <T>(
  source: Observable<T>,
  { objectMode, ...bounds }: Bounds<T> & { objectMode: boolean },
): Readable => {
  // Stryker disable next-line BooleanLiteral: before the first read, one value would wait in the stream instead of the queue.
  let wants = false;
  const stream = new Readable({
    objectMode,
    // Values must wait in the queue, which bounds and counts them.
    highWaterMark: 1,
    read: () => {
      wants = true;
      reader.pull();
    },
    destroy: (error, done) => {
      reader.cancel();
      done(error);
    },
  });
  const reader = new BoundedReader<T>(source, bounds, {
    get wants() {
      return wants;
    },
    next: (value) => {
      wants = false;
      if (value === null)
        stream.destroy(new TypeError("null can't be a chunk of a Node stream: remove it with filter()"));
      // `push` returns `true` if the reader wants more. It may also have called `read` by then. If the stream doesn't
      // flow, the chunk waits in the stream, outside the queue.
      else if (stream.push(stream.readableFlowing ? value : withOwnBytes(value))) wants = true;
    },
    end: (failure) => {
      if (failure === undefined) stream.push(null);
      else stream.destroy(errorOf(failure));
    },
  });
  return stream;
};

const errorOf = ({ error }: SourceError): Error =>
  isError(error) ? error : new Error("The source errored with a value that isn't an Error", { cause: error });
