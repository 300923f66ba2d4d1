import type { StandardSchemaV1 } from '@standard-schema/spec';
import type * as t from 'io-ts';
import type { Frame } from '../../protocol/frame.js';
import { tryCall } from '../../protocol/type-guards.js';
import { aFunction, invalidOption } from '../../protocol/validate.js';
import { type Check, type DecodeIssue, jsonPointer, Refused } from './decode-failure.js';
import { ioTsCheck } from './io-ts-check.js';

/** Decodes a JSON document: an io-ts codec, or a schema that implements Standard Schema (zod, valibot, arktype, …). */
export type Codec<A> = t.Type<A, unknown> | StandardSchemaV1<unknown, A>;

type Standard<A> = StandardSchemaV1<unknown, A>;

/** Returns a function that parses and checks a frame's JSON, and returns its value. Throws what the codec throws. */
export const documentReader = <A>(codec: Codec<A>): ((frame: Frame) => A | Refused) => {
  const check = checkOf(codec);
  return (frame) => {
    if (frame.isBinary) return refusedAs('binary frame; expected JSON text');
    let document: unknown;
    try {
      document = frame.json();
    } catch (error) {
      // Keep only the position, because V8 often quotes the payload.
      return refusedAs(`invalid JSON${/ at position \d+/.exec(String(error))?.[0] ?? ''}`);
    }
    try {
      const checked = check(document);
      return checked instanceof Refused ? new Refused(() => issuesOf(checked, document)) : checked;
    } catch (error) {
      return tooLarge(error, document);
    }
  };
};

const refusedAs = (message: string): Refused => new Refused(() => [{ path: '', message }]);

const checkOf = <A>(codec: Codec<A>): Check<A> => {
  const { '~standard': standard, is, decode } = Object(codec) as Partial<StandardSchemaV1 & t.Type<A>>;
  if (aFunction.is(standard?.validate)) return standardCheck(codec as Standard<A>);
  if (aFunction.is(is) && aFunction.is(decode)) return ioTsCheck(codec as t.Type<A, unknown>);
  throw invalidOption('codec', 'an io-ts codec or a Standard Schema (zod, valibot, arktype)');
};

// Collecting the issues can also run out of stack: some libraries print the refused value recursively.
const issuesOf = ({ issues }: Refused, document: unknown): readonly DecodeIssue[] => {
  try {
    return issues();
  } catch (error) {
    return tooLarge(error, document).issues();
  }
};

/** The part used here of a zod 3, zod 4 or zod/mini schema. */
interface ZodSchema<A> {
  readonly safeParse: (
    document: unknown,
  ) =>
    | { readonly success: true; readonly data: A }
    | { readonly success: false; readonly error: { readonly issues: readonly StandardSchemaV1.Issue[] } };
}

export const standardCheck = <A>(schema: Standard<A>): Check<A> => {
  const { '~standard': standard, safeParse } = schema as Standard<A> & Partial<ZodSchema<A>>;
  return standard.vendor === 'zod' && aFunction.is(safeParse)
    ? zodCheck(schema as Standard<A> & ZodSchema<A>)
    : validateCheck(standard);
};

const validateCheck =
  <A>(standard: Standard<A>['~standard']): Check<A> =>
  (document) => {
    const result = standard.validate(document);
    if ('then' in result) {
      // The operator doesn't wait for this promise, and if it rejected without a handler, the process would end.
      result.then(undefined, () => undefined);
      throw asynchronous();
    }
    const { issues } = result;
    return issues === undefined ? result.value : refusedWith(() => issues);
  };

// If a function in the schema throws, zod's `validate` drops the error, calls the function once more and returns a
// promise. `safeParse` throws the error.
const zodCheck =
  <A>(schema: ZodSchema<A>): Check<A> =>
  (document) => {
    try {
      const result = schema.safeParse(document);
      return result.success ? result.data : refusedWith(() => result.error.issues);
    } catch (error) {
      // zod's error for an asynchronous schema has no name or code, and minifiers change its class name, so only the
      // text identifies it. If a later zod changes the text, the stream ends with zod's error.
      const isAsync = String((Object(error) as Partial<Error>).message).includes('during synchronous parse');
      throw isAsync ? asynchronous() : error;
    }
  };

const asynchronous = () => invalidOption('codec', 'synchronous: this schema returned a promise');

const refusedWith = (issues: () => readonly StandardSchemaV1.Issue[]): Refused =>
  new Refused(() =>
    issues().map(({ path = [], message }) => ({
      // arktype's path is a subclass of Array with its own `map`.
      path: jsonPointer(Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment))),
      message,
    })),
  );

// A frame must not end the stream, so a document too large for the stack is refused. An overflow on a small one comes
// from a user function that recurses without end, and is thrown like any other error.
const tooLarge = (error: unknown, document: unknown): Refused => {
  const excess = overflow.test(tryCall(() => String(error)) ?? '') ? excessOf(document) : undefined;
  if (excess === undefined) throw error;
  return refusedAs(`${excess}: the codec ran out of stack`);
};

// V8 and JavaScriptCore, SpiderMonkey.
const overflow = /^(RangeError: Maximum call stack size exceeded|InternalError: too much recursion)/;

// Goes level by level, because recursing would run out of stack as well.
const excessOf = (document: unknown): string | undefined => {
  let [depth, values] = [0, 0];
  for (let level: readonly unknown[] = [document]; level.length > 0; depth += 1) {
    if (depth > 100) return 'nested more than 100 levels deep';
    values += level.length;
    level = level.flatMap((value) => (typeof value === 'object' ? Object.values({ ...value }) : []));
  }
  return values > 10_000 ? 'more than 10000 values' : undefined;
};
