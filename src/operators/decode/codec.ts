import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Either } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import type { Frame } from '../../protocol/frame.js';
import { isRight, left } from '../../protocol/type-guards.js';
import { aFunction, invalidOption } from '../../protocol/validate.js';
import { type Check, type DecodeFailure, decodeFailure, type DecodeIssue } from './decode-failure.js';
import { ioTsCheck } from './io-ts-check.js';
import { standardCheck } from './standard-check.js';

/** Decodes a JSON document: an io-ts codec, or a schema that implements Standard Schema (zod, valibot, arktype, …). */
export type Codec<A> = t.Type<A, unknown> | StandardSchemaV1<unknown, A>;

/** Reads and checks JSON. Returns the value, or a function that creates the failure. Throws what the codec throws. */
export const documentReader = <A>(codec: Codec<A>): ((frame: Frame) => Either<() => DecodeFailure, A>) => {
  const check = checkOf(codec);
  return (frame) => {
    if (frame.isBinary) return refused(frame, 'binary frame; expected JSON text');
    let document: unknown;
    try {
      document = frame.json();
    } catch (error) {
      // Keep only the position, because V8 often quotes the payload.
      return refused(frame, `invalid JSON${/ at position \d+/.exec(String(error))?.[0] ?? ''}`);
    }
    try {
      const checked = check(document);
      return isRight(checked) ? checked : left(() => decodeFailure(frame, collected(checked.left, document)));
    } catch (error) {
      return refused(frame, overflowOf(error, document));
    }
  };
};

const refused = (frame: Frame, message: string): Either<() => DecodeFailure, never> =>
  left(() => decodeFailure(frame, [{ path: '', message }]));

const checkOf = <A>(codec: Codec<A>): Check<A> => {
  const { '~standard': standard, is, decode } = Object(codec) as Partial<StandardSchemaV1 & t.Type<A>>;
  if (aFunction.is(standard?.validate)) return standardCheck(codec as StandardSchemaV1<unknown, A>);
  if (aFunction.is(is) && aFunction.is(decode)) return ioTsCheck(codec as t.Type<A, unknown>);
  throw invalidOption('codec', 'an io-ts codec or a Standard Schema (zod, valibot, arktype)');
};

// Collecting the issues can also run out of stack: some libraries print the refused value recursively.
const collected = (issues: () => readonly DecodeIssue[], document: unknown): readonly DecodeIssue[] => {
  try {
    return issues();
  } catch (error) {
    return [{ path: '', message: overflowOf(error, document) }];
  }
};

/** A document with up to this depth and this many values can't have caused the stack overflow. */
const maxDepth = 100;
const maxValues = 10_000;

// A frame must not end the stream, so a document too large for the stack is refused. Any other error comes from a user
// function and is thrown. So is an overflow on a small document, because user code must have recursed without end.
const overflowOf = (error: unknown, document: unknown): string => {
  const { name, message } = Object(error) as Partial<Error>;
  const excess = overflow.test(`${String(name)}: ${String(message)}`) ? excessOf(document) : undefined;
  if (excess === undefined) throw error;
  return `${excess}: the codec ran out of stack`;
};

// V8 and JavaScriptCore, SpiderMonkey.
const overflow = /^(RangeError: Maximum call stack size exceeded|InternalError: too much recursion)/;

// Goes level by level, because recursing would run out of stack as well.
const excessOf = (document: unknown): string | undefined => {
  let values = 0;
  let level: readonly unknown[] = [document];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxDepth) return `nested more than ${maxDepth} levels deep`;
    values += level.length;
    level = level.flatMap((value) => (typeof value === 'object' ? Object.values({ ...value }) : []));
  }
  return values > maxValues ? `more than ${maxValues} values` : undefined;
};
