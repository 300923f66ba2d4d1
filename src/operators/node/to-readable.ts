import { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { aBoolean, validated } from '../../protocol/rules.js';
import { BoundedReader } from '../bounded/bounded-reader.js';
import type { SourceError } from '../items/item.js';
import { type Held, Holding } from '../memory/holding.js';
import { boundDefaults, type BoundOptions, type Bounds, boundRules } from '../bounded/bounds.js';

/** What the stream carries, and how much may wait for its reader. */
export interface ReadableOptions<T = unknown> extends BoundOptions<T> {
  /** `true`: any value is a chunk. `false`: a stream of bytes, of byte arrays and texts. @defaultValue `true` */
  readonly objectMode?: boolean | undefined;
}

/**
 * Makes an Observable a Node stream, and bounds what waits for its reader.
 *
 * It subscribes when the stream is first read, and unsubscribes when it is destroyed. Values that come while the reader is not ready wait
 * in order; beyond `capacity` or `capacityBytes` they are dropped. When the source completes, the stream ends; when it errors, the stream is
 * destroyed with that error; either way after the values that wait. With `overflow: 'error'` an {@link OverflowError} ends it in the
 * same way, and so does what `onDrop` throws.
 *
 * `onDrop` is called as {@link mergeMapBounded} calls it.
 * Holds `capacity` values of at most `capacityBytes` together, and one chunk in the stream itself. `null` cannot be a chunk.
 *
 * ```ts
 * // source                        --a-b-c-d-------|
 * // toReadable({ capacity: 1 })   --a------d------|   while the reader is busy with a, c takes the place of b, and d that of c
 * ```
 *
 * @param options - see {@link ReadableOptions}
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
  const given = validated(options, { ...boundRules, objectMode: aBoolean });
  return (source) => readable(source, { ...boundDefaults, objectMode: true, ...given });
}

// By hand: `Readable.from` takes several turns of the microtask queue for each chunk.
const readable = <T>(
  source: Observable<T>,
  { objectMode, ...bounds }: Bounds<T> & { objectMode: boolean },
): Readable => {
  let wants = false;
  // The chunk that waits in the stream, and not in the queue.
  const holding = new Holding<T>();
  let inStream: Held<T> | undefined;
  const stream = new Readable({
    objectMode,
    // What waits must be in the queue, where it is bounded and counted.
    highWaterMark: 1,
    read: () => {
      wants = true;
      if (inStream !== undefined) holding.release(inStream);
      inStream = undefined;
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
      if (value === null) stream.destroy(new TypeError('null cannot be a chunk of a Node stream: filter it out'));
      // Further reads may be asked for while it is pushed.
      else if (stream.push(value)) wants = true;
      // A byte array in the stream cannot be replaced, so it is not copied.
      else if (!(value instanceof Uint8Array)) inStream = holding.hold(value);
    },
    end: (failure) => {
      if (failure === undefined) stream.push(null);
      else stream.destroy(errorOf(failure));
    },
  });
  return stream;
};

const errorOf = ({ error }: SourceError): Error =>
  error instanceof Error ? error : new Error('The source ended with something that is no Error', { cause: error });
