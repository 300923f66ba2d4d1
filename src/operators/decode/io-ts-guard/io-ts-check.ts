import { isRight, left, right } from '../../../protocol/either.js';
import type * as t from 'io-ts';
import { type Check, type DecodeIssue, jsonPointer } from '../decode-failure.js';
import { changesNothing } from './changes-nothing.js';
import { compiledGuard, type Guard } from './compiled-guard.js';
import { unwrapped } from './tagged.js';

/**
 * Creates the check of an io-ts codec.
 *
 * If the codec changes nothing, a guard checks each document, and only a document that the guard refuses is decoded. Decoding is slower, because
 * it records the path for errors. The first document compiles the guard. If `compile` returns `undefined`, the codec's `is` is the guard.
 */
export const ioTsCheck = <A>(codec: t.Type<A, unknown>, compile = compiledGuard): Check<A> => {
  const isValid = createdOnFirstCall(() =>
    changesNothing(codec) ? (compile(codec) ?? ((document) => codec.is(document))) : never,
  );
  return (document) => {
    if (isValid(document)) return right(document as A);
    const result = codec.decode(document);
    return isRight(result) ? result : left(() => result.left.map(ioTsIssue));
  };
};

const never = () => false;

const createdOnFirstCall = (create: () => Guard): Guard => {
  let guard: Guard | undefined;
  return (document) => (guard ??= create())(document);
};

const ioTsIssue = ({ context, message }: t.ValidationError): DecodeIssue => ({
  path: jsonPointer(context.filter((_, n) => n > 0 && !isAlternative(context[n - 1])).map(({ key }) => key)),
  message: message ?? `expected ${context.at(-1)?.type.name ?? 'something else'}`,
});

// The context numbers the members of a union or an intersection. These numbers are not part of the path in the document.
const isAlternative = (entry: t.ContextEntry | undefined): boolean => {
  const tag = entry && unwrapped(entry.type)._tag;
  return tag === 'UnionType' || tag === 'IntersectionType';
};
