import { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { aBoolean, validated } from '../../protocol/validate.js';
import { BoundedReader } from '../bounded/bounded-reader.js';
import { type SourceError, withOwnBytes } from '../items/item.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from '../bounded/bounded-queue.js';

/** The options of {@link toReadable}. */
export interface ReadableOptions<T = unknown> extends BoundOptions<T> {
  /**
   * `true`: any value is a chunk. `false`: a byte stream, whose chunks are byte arrays and strings. @defaultValue
   * `true`
   */
  readonly objectMode?: boolean | undefined;
}

/**
 * Converts an Observable to a Node stream, with a bounded queue for its reader.
 *
 * The stream subscribes when it is first read, and unsubscribes when it is destroyed. Values that arrive while the
 * reader is busy wait in order. When more than `capacity` values or `capacityBytes` wait, values are dropped. When the
 * source completes, the stream ends; when the source errors, the stream is destroyed with that error. Both happen after
 * the waiting values. With `overflow: 'error'` an {@link OverflowError} destroys the stream in the same way, and so
 * does an error that `onDrop` throws.
 *
 * `onDrop` is called as in {@link mergeMapBounded}. Stores at most `capacity` values with `capacityBytes` in total, and
 * one chunk in the stream. `null` cannot be a chunk.
 * ```ts
 * // source                        --a-b-c-d-------|
 * // toReadable({ capacity: 1 })   --a------d------|   while the reader is busy with a, c replaces b, and d replaces c
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
 * await pipeline(toReadable({ objectMode: false })(lines$), createWriteStream('frames.ndjson'));
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

// `Readable.from` would need several microtasks for each chunk.
const readable = <T>(
  source: Observable<T>,
  { objectMode, ...bounds }: Bounds<T> & { objectMode: boolean },
): Readable => {
  let wants = false;
  const stream = new Readable({
    objectMode,
    // Values must wait in the queue, where they are bounded and counted.
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
      // `push` returns `true` when the reader wants more; it may also call `read` in between.
      else if (stream.push(value)) wants = true;
      // The chunk waits in the stream instead of the queue. A byte array stays as it is: the stream already has it.
      else if (!(value instanceof Uint8Array)) withOwnBytes(value);
    },
    end: (failure) => {
      if (failure === undefined) stream.push(null);
      else stream.destroy(errorOf(failure));
    },
  });
  return stream;
};

const errorOf = ({ error }: SourceError): Error =>
  error instanceof Error ? error : new Error("The source errored with a value that isn't an Error", { cause: error });
