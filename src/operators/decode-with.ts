import { filter, map, type Observable } from 'rxjs';
import type { AnyFrame, Frame } from '../protocol/frame.js';
import { aFunction, oneOf, validated } from '../protocol/validate.js';
import { type Codec, documentReader } from './decode/codec.js';
import { DecodeError, decodeFailure, type DecodeFailure, Refused } from './decode/decode-failure.js';
import { Decoded, type FrameIn, isFrame } from './items/item.js';

/** The options of {@link decodeWith}. */
export interface DecodeOptions {
  /**
   * What to do with a frame the codec refuses: `'drop'` it, `'error'` with a {@link DecodeError}, or call your function
   * with the failure and drop the frame. @defaultValue `'drop'`
   */
  readonly onInvalid?: 'drop' | 'error' | ((failure: DecodeFailure) => void) | undefined;
}

/**
 * Parses the JSON of text frames and checks it with an io-ts codec or any Standard Schema (zod, valibot, arktype).
 *
 * Emits a {@link Decoded} for each valid frame; everything else passes unchanged, in order. A frame is invalid if it's
 * binary, not JSON, refused by the codec, or nested so deeply that the codec runs out of stack: `onInvalid` decides
 * what happens to it. The failure says where in the document the problem is, but doesn't contain the payload.
 *
 * Completes and errors with the source. Also errors when a function in the codec or `onInvalid` throws, and with
 * `invalid-options` if the schema is asynchronous. Memory: none. If an io-ts codec returns valid documents unchanged,
 * its `is` checks them, and only frames it refuses are decoded.
 * ```ts
 * // source               --{"n":1}---{"n":"x"}--gap--{"n":2}---|
 * // decodeWith(codec)    --{ n: 1 }-------------gap--{ n: 2 }--|
 * ```
 *
 * @param codec - an io-ts codec or a synchronous Standard Schema
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import * as t from 'io-ts';
 * import { from } from 'rxjs';
 * import { decodeWith, Frame } from 'rx-trade-feed';
 *
 * const Transaction = t.type({ hash: t.string, value: t.string });
 * const frame = (text: string) =>
 *   new Frame('raw', Buffer.from(text), false, Date.now(), 1);
 *
 * from([frame('{"hash":"0x1","value":"12"}'), frame('{"hash":"0x2"}')])
 *   // [ { path: '/value', message: 'expected string' } ]
 *   .pipe(
 *     decodeWith(Transaction, { onInvalid: ({ issues }) => console.log(issues) }),
 *   )
 *   .subscribe(({ value }) => console.log(value.hash)); // 0x1
 * ```
 */
export const decodeWith = <A>(
  codec: Codec<A>,
  options: DecodeOptions = {},
): (<E>(source: Observable<E>) => Observable<Exclude<E, AnyFrame> | Decoded<A, FrameIn<E>>>) => {
  const { onInvalid = 'drop' } = validated(options, { onInvalid: aReaction });
  const read = documentReader(codec);
  const decoded = (frame: Frame): Decoded<A> | typeof dropped => {
    const value = read(frame);
    if (!(value instanceof Refused)) return new Decoded(value, frame);
    if (onInvalid === 'drop') return dropped;
    const failure = decodeFailure(frame, value.issues());
    if (onInvalid === 'error') throw new DecodeError(failure);
    onInvalid(failure);
    return dropped;
  };
  return <E>(source: Observable<E>) =>
    source.pipe(
      map((event) => (isFrame(event) ? decoded(event) : event)),
      filter((event) => event !== dropped),
    ) as Observable<Exclude<E, AnyFrame> | Decoded<A, FrameIn<E>>>;
};

const dropped = Symbol('dropped');

const reactions = oneOf('drop', 'error');
const aReaction = {
  allowed: `${reactions.allowed} or a function`,
  is: (v: unknown) => reactions.is(v) || aFunction.is(v),
};
