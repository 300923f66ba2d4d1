import { isRight } from 'fp-ts/lib/Either.js';
import { filter, map, type Observable } from 'rxjs';
import type { AnyFrame, Frame } from '../protocol/frame.js';
import { aBoolean, aFunction, oneOf, validated } from '../protocol/rules.js';
import { type Codec, documentReader } from './decode/codec.js';
import { DecodeError, type DecodeFailure } from './decode/decode-failure.js';
import { Decoded } from './items/decoded.js';
import { type FrameIn, isFrame } from './items/item.js';

/** How frames are decoded, and what is done with a frame that the codec refuses. */
export interface DecodeOptions {
  /**
   * `'drop'` leaves the frame out. `'error'` ends the stream with a {@link DecodeError}. A function receives the failure, and the frame is left out.
   * @defaultValue `'drop'`
   */
  readonly onInvalid?: 'drop' | 'error' | ((failure: DecodeFailure) => void) | undefined;
  /**
   * `false` never compiles a guard from a codec of io-ts. Use it in a page whose `Content-Security-Policy` disallows `'unsafe-eval'` and reports
   * violations: the first try to compile is reported as one.
   * @defaultValue `true`
   */
  readonly compile?: boolean | undefined;
}

/**
 * Decodes the JSON of text frames with a codec of io-ts or any Standard Schema (zod, valibot, arktype), and checks it thereby.
 *
 * Emits a {@link Decoded} for each frame that fits: the value with its frame. Everything that is no frame passes through in its
 * place. A frame that is binary, no JSON, refused by the codec, or nested so deeply that the codec runs out of stack never ends the
 * stream, unless `onInvalid` says `'error'`; the failure says where in the document, and does not hold the payload. Errors and completes
 * with the source. Errors with what a function in the codec throws, whatever `onInvalid` says, and with what `onInvalid` throws; with
 * `invalid-options` when the schema is asynchronous. Holds nothing.
 *
 * A codec of io-ts that changes nothing is checked by a guard that is compiled from it for the first frame, and decodes only the frames
 * that the guard refuses. Where code generation is disallowed, and with `compile: false`, the codec's own guard is called instead.
 *
 * ```ts
 * // source               --{"n":1}---{"n":"x"}--gap--{"n":2}---|
 * // decodeWith(codec)    --{ n: 1 }-------------gap--{ n: 2 }--|
 * ```
 *
 * @param codec - of io-ts, or a synchronous Standard Schema
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import * as t from 'io-ts';
 * import { from } from 'rxjs';
 * import { decodeWith, Frame } from 'rx-trade-feed';
 *
 * const Transaction = t.type({ hash: t.string, value: t.string });
 * const frame = (text: string) => new Frame('raw', Buffer.from(text), false, Date.now(), 1);
 *
 * from([frame('{"hash":"0x1","value":"12"}'), frame('{"hash":"0x2"}')])
 *   .pipe(decodeWith(Transaction, { onInvalid: ({ issues }) => console.log(issues) })) // [ { path: '/value', message: 'expected string' } ]
 *   .subscribe(({ value }) => console.log(value.hash)); // 0x1
 * ```
 */
export const decodeWith = <A>(
  codec: Codec<A>,
  options: DecodeOptions = {},
): (<E>(source: Observable<E>) => Observable<Exclude<E, AnyFrame> | Decoded<A, FrameIn<E>>>) => {
  const { onInvalid = 'drop', compile } = validated(options, { onInvalid: aReaction, compile: aBoolean });
  const read = documentReader(codec, compile);
  const decoded = (frame: Frame): Decoded<A> | typeof refused => {
    const result = read(frame);
    if (isRight(result)) return new Decoded(result.right, frame);
    if (onInvalid === 'error') throw new DecodeError(result.left());
    if (onInvalid !== 'drop') onInvalid(result.left());
    return refused;
  };
  return <E>(source: Observable<E>) =>
    source.pipe(
      map((event) => (isFrame(event) ? decoded(event) : event)),
      filter((event) => event !== refused) as (
        events: Observable<unknown>,
      ) => Observable<Exclude<E, AnyFrame> | Decoded<A, FrameIn<E>>>,
    );
};

const refused = Symbol('refused');

const words = oneOf('drop', 'error');
const aReaction = { allowed: `${words.allowed} or a function`, is: (v: unknown) => words.is(v) || aFunction.is(v) };
