import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type Either, isRight, left } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import type { Frame } from '../../protocol/frame.js';
import { aFunction, invalidOption } from '../../protocol/rules.js';
import { compiledGuard } from './io-ts-guard/compiled-guard.js';
import { type DecodeFailure, decodeFailure } from './decode-failure.js';
import { type Check, ioTsCheck } from './io-ts-guard/io-ts-check.js';
import { isStackOverflow, refusingOverflows } from './stack-overflow.js';
import { standardCheck } from './standard-check.js';

/** Decodes a JSON document: a codec of io-ts, or any schema that follows Standard Schema (zod, valibot, arktype, …). */
export type Codec<A> = t.Type<A, unknown> | StandardSchemaV1<unknown, A>;

/** Reads the document of a frame. The issues of a refused document are collected only when the function on the left is called. */
export type DocumentReader<A> = (frame: Frame) => Either<() => DecodeFailure, A>;

/**
 * Makes the reader of a codec: the JSON of a text frame, checked by the codec.
 *
 * The reader refuses a document whose size or depth makes the codec run out of stack. It throws what a function in the codec throws, and
 * `invalid-options` when the schema is asynchronous.
 *
 * @param compile - whether a guard may be compiled from a codec of io-ts
 * @throws TradeFeedError with code `invalid-options` when it is not a codec
 */
export const documentReader = <A>(codec: Codec<A>, compile = true): DocumentReader<A> => {
  const check = refusingOverflows(checkOf(codec, compile));
  return (frame) => {
    if (frame.isBinary) return left(() => decodeFailure(frame, [{ path: '', message: 'a binary frame, not JSON' }]));
    let document: unknown;
    try {
      document = frame.json();
    } catch (error) {
      return left(() => decodeFailure(frame, [{ path: '', message: jsonProblem(error) }]));
    }
    const checked = check(document);
    return isRight(checked) ? checked : left(() => decodeFailure(frame, checked.left()));
  };
};

const jsonProblem = (error: unknown): string =>
  isStackOverflow(error) ? 'nested too deeply for JSON.parse' : `no JSON${positionIn(error)}`;

// V8 often quotes the payload instead; the position is enough.
const positionIn = (error: unknown): string => / at position \d+/.exec(String(error))?.[0] ?? '';

const checkOf = <A>(codec: Codec<A>, compile: boolean): Check<A> => {
  if (isStandardSchema(codec)) return standardCheck(codec);
  if (isIoTs(codec)) return ioTsCheck(codec, compile ? compiledGuard : never);
  throw invalidOption('codec', 'a codec of io-ts or a Standard Schema (zod, valibot, arktype)');
};

const isStandardSchema = <A>(codec: Codec<A>): codec is StandardSchemaV1<unknown, A> =>
  aFunction.is((codec as Partial<StandardSchemaV1> | null | undefined)?.['~standard']?.validate);

const isIoTs = <A>(codec: Codec<A>): codec is t.Type<A, unknown> => {
  const { is, decode } = ((codec as t.Type<A> | undefined) ?? {}) as Partial<t.Type<A>>;
  return aFunction.is(is) && aFunction.is(decode);
};

const never = () => undefined;
