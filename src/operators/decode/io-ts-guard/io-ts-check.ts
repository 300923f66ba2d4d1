import { type Either, isRight, left, right } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { changesNothing } from './changes-nothing.js';
import { compiledGuard, type Guard } from './compiled-guard.js';
import { type DecodeIssue, jsonPointer } from '../decode-failure.js';
import { unwrapped } from './tagged.js';

/** Checks a document. The issues of a refused document are collected only when the function on the left is called. */
export type Check<A> = (document: unknown) => Either<() => readonly DecodeIssue[], A>;

/**
 * Makes the check of a codec of io-ts. If the codec changes nothing, a guard checks the document, and only what the guard refuses is decoded: decoding
 * is slower, because it records the path for errors. The guard is compiled for the first document. If `compile` gives none, the codec's own guard is called.
 */
export const ioTsCheck = <A>(codec: t.Type<A, unknown>, compile = compiledGuard): Check<A> => {
  const fits = madeAtFirst(() =>
    changesNothing(codec) ? (compile(codec) ?? ((document) => codec.is(document))) : never,
  );
  return (document) => {
    if (fits(document)) return right(document as A);
    const result = codec.decode(document);
    return isRight(result) ? result : left(() => result.left.map(ioTsIssue));
  };
};

const never = () => false;

const madeAtFirst = (make: () => Guard): Guard => {
  let made: Guard | undefined;
  return (document) => (made ??= make())(document);
};

const ioTsIssue = ({ context, message }: t.ValidationError): DecodeIssue => ({
  path: jsonPointer(context.filter((_, n) => n > 0 && !isAlternative(context[n - 1])).map(({ key }) => key)),
  message: message ?? `expected ${context.at(-1)?.type.name ?? 'something else'}`,
});

// The members of a union or an intersection are numbered in the context, but are no place in the document.
const isAlternative = (entry: t.ContextEntry | undefined): boolean => {
  const tag = entry && unwrapped(entry.type)._tag;
  return tag === 'UnionType' || tag === 'IntersectionType';
};
