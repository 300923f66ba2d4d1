import type { Either } from 'fp-ts/lib/Either.js';
import { map, type Observable } from 'rxjs';
import type { AnyFrame, Frame } from '../protocol/frame.js';
import { type Codec, documentReader } from './decode/codec.js';
import { decodeFailure, type DecodeFailure, Refused } from './decode/decode-failure.js';
import { Decoded, type FrameIn, isFrame } from './items/item.js';

/**
 * Decodes frames as {@link decodeWith} does, and emits an fp-ts `Either` for each: the failure or the {@link Decoded}.
 *
 * Everything else passes unchanged, in order. Completes and errors with the source. Also errors when a function in the
 * codec throws, and with `invalid-options` if the schema is asynchronous. Memory: none.
 * ```ts
 * // source                 --{"n":1}----------{"n":"x"}--gap--|
 * // decodeEither(codec)    --right({ n: 1 })--left(/n)---gap--|
 * ```
 *
 * @param codec - an io-ts codec or a synchronous Standard Schema
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { match } from 'fp-ts/lib/Either.js';
 * import * as t from 'io-ts';
 * import { map, of } from 'rxjs';
 * import { decodeEither, Frame } from 'rx-trade-feed';
 *
 * of(new Frame('market', Buffer.from('{"n":"x"}'), false, Date.now(), 1))
 *   .pipe(
 *     decodeEither(t.type({ n: t.number })),
 *     map(
 *       match(
 *         (failure) => `wrong at ${failure.issues[0]?.path}`,
 *         ({ value }) => `n is ${value.n}`,
 *       ),
 *     ),
 *   )
 *   .subscribe(console.log); // wrong at /n
 * ```
 */
export const decodeEither = <A>(
  codec: Codec<A>,
): (<E>(source: Observable<E>) => Observable<Exclude<E, AnyFrame> | Either<DecodeFailure, Decoded<A, FrameIn<E>>>>) => {
  const read = documentReader(codec);
  const decoded = (frame: Frame): Either<DecodeFailure, Decoded<A>> => {
    const value = read(frame);
    // As fp-ts does, which takes half as long to load as RxJS.
    return value instanceof Refused
      ? { _tag: 'Left', left: decodeFailure(frame, value.issues()) }
      : { _tag: 'Right', right: new Decoded(value, frame) };
  };
  return <E>(source: Observable<E>) =>
    source.pipe(map((event) => (isFrame(event) ? decoded(event) : event))) as Observable<
      Exclude<E, AnyFrame> | Either<DecodeFailure, Decoded<A, FrameIn<E>>>
    >;
};
