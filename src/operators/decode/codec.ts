import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type Either, isRight, left, right } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import type { Frame } from '../../protocol/frame.js';
import { aFunction, invalidOption } from '../../protocol/rules.js';
import { type Check, ioTsCheck } from './io-ts-check.js';
import { type DecodeFailure, decodeFailure, type DecodeIssue, jsonPointer } from './decode-failure.js';

/** What can decode a JSON document: a codec of io-ts, or any schema that follows Standard Schema (zod, valibot, arktype, …). */
export type Codec<A> = t.Type<A, unknown> | StandardSchemaV1<unknown, A>;

/** Reads the document of a frame; what is wrong with one that is refused is found out only when it is asked for. */
export type DocumentReader<A> = (frame: Frame) => Either<() => DecodeFailure, A>;

/**
 * Makes the reader of a codec: the JSON of a text frame, checked by the codec.
 *
 * @throws TradeFeedError with code `invalid-options` when the codec is none
 */
export const documentReader = <A>(codec: Codec<A>): DocumentReader<A> => {
  const check = checkOf(codec);
  return (frame) => {
    if (frame.isBinary) return left(() => decodeFailure(frame, [{ path: '', message: 'a binary frame, not JSON' }]));
    let document: unknown;
    try {
      document = frame.json();
    } catch (error) {
      return left(() => decodeFailure(frame, [{ path: '', message: `no JSON${positionIn(error)}` }]));
    }
    const checked = check(document);
    return isRight(checked) ? checked : left(() => decodeFailure(frame, checked.left()));
  };
};

// V8 often quotes the payload instead; the position is enough.
const positionIn = (error: unknown): string => / at position \d+/.exec(String(error))?.[0] ?? '';

const checkOf = <A>(codec: Codec<A>): Check<A> => {
  if (isStandardSchema(codec)) return standardCheck(codec);
  if (isIoTs(codec)) return ioTsCheck(codec);
  throw invalidOption('codec', 'a codec of io-ts or a Standard Schema (zod, valibot, arktype)');
};

const isStandardSchema = <A>(codec: Codec<A>): codec is StandardSchemaV1<unknown, A> =>
  aFunction.is((codec as Partial<StandardSchemaV1> | null | undefined)?.['~standard']?.validate);

const isIoTs = <A>(codec: Codec<A>): codec is t.Type<A, unknown> => {
  const { is, decode } = ((codec as t.Type<A> | undefined) ?? {}) as Partial<t.Type<A>>;
  return aFunction.is(is) && aFunction.is(decode);
};

const standardCheck = <A>({ '~standard': schema }: StandardSchemaV1<unknown, A>): Check<A> => {
  return (document) => {
    const result = schema.validate(document);
    if ('then' in result) {
      // Nobody waits for it: what it rejects with later must not end the process.
      result.then(undefined, () => undefined);
      throw invalidOption('codec', 'synchronous: this schema answers with a promise');
    }
    const { issues } = result;
    return issues === undefined ? right(result.value) : left(() => issues.map(standardIssue));
  };
};

const standardIssue = ({ path = [], message }: StandardSchemaV1.Issue): DecodeIssue => ({
  // A path may be an array of a kind of its own, whose `map` does not do what it should.
  path: jsonPointer(Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment))),
  message,
});
