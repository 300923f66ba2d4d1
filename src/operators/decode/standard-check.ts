import type { StandardSchemaV1 } from '@standard-schema/spec';
import { left, right } from '../../protocol/either.js';
import type { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import { aFunction, invalidOption } from '../../protocol/rules.js';
import { type Check, type DecodeIssue, jsonPointer } from './decode-failure.js';

/**
 * Creates the check of a Standard Schema.
 *
 * The check throws the errors of functions in the schema, and `invalid-options` when the schema is asynchronous.
 */
export const standardCheck = <A>(schema: StandardSchemaV1<unknown, A>): Check<A> =>
  isZod(schema) ? zodCheck(schema) : validateCheck(schema);

const validateCheck =
  <A>({ '~standard': schema }: StandardSchemaV1<unknown, A>): Check<A> =>
  (document) => {
    const result = schema.validate(document);
    if ('then' in result) {
      // The operator does not wait for this promise. Without a handler, a rejection would end the process.
      result.then(undefined, () => undefined);
      throw asynchronous();
    }
    const { issues } = result;
    return issues === undefined ? right(result.value) : left(() => issues.map(decodeIssue));
  };

/** The part of a zod 3, zod 4 or zod/mini schema that this file uses. */
interface ZodSchema<A> {
  readonly safeParse: (document: unknown) => ZodResult<A>;
}

type ZodResult<A> =
  | { readonly success: true; readonly data: A }
  | { readonly success: false; readonly error: { readonly issues: readonly StandardSchemaV1.Issue[] } };

const isZod = <A>(
  schema: StandardSchemaV1<unknown, A>,
): schema is StandardSchemaV1<unknown, A> & Readonly<ZodSchema<A>> =>
  schema['~standard'].vendor === 'zod' && aFunction.is((schema as Partial<ZodSchema<A>>).safeParse);

// When a function in the schema throws, zod's `validate` drops the error, calls the function again and returns a promise. `safeParse` throws
// the error.
const zodCheck =
  <A>(schema: ZodSchema<A>): Check<A> =>
  (document) => {
    const result = zodResult(schema, document);
    return result.success ? right(result.data) : left(() => result.error.issues.map(decodeIssue));
  };

const zodResult = <A>(schema: ZodSchema<A>, document: unknown): ZodResult<A> => {
  try {
    return schema.safeParse(document);
  } catch (error) {
    throw isAsyncError(error) ? asynchronous() : error;
  }
};

// zod's error for an asynchronous schema has no name or code, and minifiers change its class name. Only the text identifies it. If a later zod
// changes the text, the stream ends with zod's error.
const isAsyncError = (error: unknown): boolean =>
  String((Object(error) as Partial<Error>).message).includes('during synchronous parse');

const asynchronous = (): TradeFeedError => invalidOption('codec', 'synchronous: this schema returned a promise');

const decodeIssue = ({ path = [], message }: StandardSchemaV1.Issue): DecodeIssue => ({
  // The path of arktype is a subclass of Array with another `map`.
  path: jsonPointer(Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment))),
  message,
});
