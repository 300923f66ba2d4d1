import type { StandardSchemaV1 } from '@standard-schema/spec';
import { left, right } from '../../protocol/type-guards.js';
import { aFunction, invalidOption } from '../../protocol/validate.js';
import { type Check, type DecodeIssue, jsonPointer } from './decode-failure.js';

/** The part used here of a zod 3, zod 4 or zod/mini schema. */
interface ZodSchema<A> {
  readonly safeParse: (
    document: unknown,
  ) =>
    | { readonly success: true; readonly data: A }
    | { readonly success: false; readonly error: { readonly issues: readonly StandardSchemaV1.Issue[] } };
}

type Standard<A> = StandardSchemaV1<unknown, A>;

export const standardCheck = <A>(schema: Standard<A>): Check<A> => {
  const isZod = schema['~standard'].vendor === 'zod' && aFunction.is((schema as Partial<ZodSchema<A>>).safeParse);
  return isZod ? zodCheck(schema as Standard<A> & ZodSchema<A>) : validateCheck(schema);
};

const validateCheck =
  <A>({ '~standard': schema }: Standard<A>): Check<A> =>
  (document) => {
    const result = schema.validate(document);
    if ('then' in result) {
      // The operator doesn't wait for this promise, and if it rejected without a handler, the process would end.
      result.then(undefined, () => undefined);
      throw asynchronous();
    }
    const { issues } = result;
    return issues === undefined ? right(result.value) : left(() => issues.map(decodeIssue));
  };

// If a function in the schema throws, zod's `validate` drops the error, calls the function once more and returns a
// promise. `safeParse` throws the error.
const zodCheck =
  <A>(schema: ZodSchema<A>): Check<A> =>
  (document) => {
    try {
      const result = schema.safeParse(document);
      return result.success ? right(result.data) : left(() => result.error.issues.map(decodeIssue));
    } catch (error) {
      // zod's error for an asynchronous schema has no name or code, and minifiers change its class name, so only the
      // text identifies it. If a later zod changes the text, the stream ends with zod's error.
      const isAsync = String((Object(error) as Partial<Error>).message).includes('during synchronous parse');
      throw isAsync ? asynchronous() : error;
    }
  };

const asynchronous = () => invalidOption('codec', 'synchronous: this schema returned a promise');

const decodeIssue = ({ path = [], message }: StandardSchemaV1.Issue): DecodeIssue => ({
  // arktype's path is a subclass of Array with its own `map`.
  path: jsonPointer(Array.from(path, (segment) => (typeof segment === 'object' ? segment.key : segment))),
  message,
});
