import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Either } from 'fp-ts/lib/Either.js';
import { isRight, left } from '../../protocol/either.js';
import type * as t from 'io-ts';
import type { Frame } from '../../protocol/frame.js';
import { aFunction, invalidOption } from '../../protocol/rules.js';
import { type Check, type DecodeFailure, decodeFailure } from './decode-failure.js';
import { ioTsCheck } from './io-ts-guard/io-ts-check.js';
import { isStackOverflow, refusingOverflows } from './stack-overflow.js';
import { standardCheck } from './standard-check.js';

/** Decodes a JSON document: an io-ts codec, or a schema that implements Standard Schema (zod, valibot, arktype, …). */
export type Codec<A> = t.Type<A, unknown> | StandardSchemaV1<unknown, A>;

/** Decodes the payload of a frame. Returns the value, or a function that creates the failure when it is called. */
export type DocumentReader<A> = (frame: Frame) => Either<() => DecodeFailure, A>;

/**
 * Creates the reader of a codec. The reader parses the JSON of a text frame, and the codec checks it.
 *
 * The reader refuses a document whose size or depth makes the codec run out of stack. It throws the errors of functions in the codec, and
 * `invalid-options` when the schema is asynchronous.
 *
 * @param compile - whether a guard may be compiled from an io-ts codec
 * @throws TradeFeedError with code `invalid-options` if the value is not a codec
 */
export const documentReader = <A>(codec: Codec<A>, compile = true): DocumentReader<A> => {
  const check = refusingOverflows(checkOf(codec, compile));
  return (frame) => {
    if (frame.isBinary)
      return left(() => decodeFailure(frame, [{ path: '', message: 'binary frame; expected JSON text' }]));
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
  isStackOverflow(error) ? 'nested too deeply for JSON.parse' : `invalid JSON${positionIn(error)}`;

// The position only: V8 often quotes the payload.
const positionIn = (error: unknown): string => / at position \d+/.exec(String(error))?.[0] ?? '';

const checkOf = <A>(codec: Codec<A>, compile: boolean): Check<A> => {
  if (isStandardSchema(codec)) return standardCheck(codec);
  if (isIoTs(codec)) return compile ? ioTsCheck(codec) : ioTsCheck(codec, neverCompile);
  throw invalidOption('codec', 'an io-ts codec or a Standard Schema (zod, valibot, arktype)');
};

const isStandardSchema = <A>(codec: Codec<A>): codec is StandardSchemaV1<unknown, A> =>
  aFunction.is((codec as Partial<StandardSchemaV1> | null | undefined)?.['~standard']?.validate);

const isIoTs = <A>(codec: Codec<A>): codec is t.Type<A, unknown> => {
  const { is, decode } = ((codec as t.Type<A> | undefined) ?? {}) as Partial<t.Type<A>>;
  return aFunction.is(is) && aFunction.is(decode);
};

const neverCompile = () => undefined;
