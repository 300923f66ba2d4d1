import { isRight, left } from 'fp-ts/lib/Either.js';
import type { DecodeIssue } from './decode-failure.js';
import type { Check } from './io-ts-guard/io-ts-check.js';

/** Up to this depth and this number of values, the document is not the cause of a stack overflow. */
const maxDepth = 100;
const maxValues = 10_000;

/**
 * Makes a check refuse a document whose depth or size makes the codec run out of stack.
 *
 * Other errors are those of the user's functions, and are thrown. So is a stack overflow on a small document: there a function of
 * the user recurses without end.
 */
export const refusingOverflows =
  <A>(check: Check<A>): Check<A> =>
  (document) => {
    try {
      const checked = check(document);
      return isRight(checked) ? checked : left(() => issuesOf(checked.left, document));
    } catch (error) {
      const issues = overflowIssues(error, document);
      return left(() => issues);
    }
  };

// Some libraries print the value that they refuse, and recurse into it.
const issuesOf = (read: () => readonly DecodeIssue[], document: unknown): readonly DecodeIssue[] => {
  try {
    return read();
  } catch (error) {
    return overflowIssues(error, document);
  }
};

const overflowIssues = (error: unknown, document: unknown): readonly DecodeIssue[] => {
  const excess = isStackOverflow(error) ? excessOf(document) : undefined;
  if (excess === undefined) throw error;
  return [{ path: '', message: `${excess}: the codec ran out of stack` }];
};

/** Returns whether an error is the one that this engine throws when the stack is full. */
export const isStackOverflow = (error: unknown): boolean => {
  const { name, message } = stackOverflow();
  const given = Object(error) as Partial<Error>;
  return given.name === name && given.message === message;
};

// V8 and JavaScriptCore throw a RangeError, which has other causes as well; SpiderMonkey throws an InternalError. So the engine is made to throw one.
const stackOverflow = (): Error => {
  const recurse = (): number => recurse() + 1;
  try {
    throw new Error(String(recurse()));
  } catch (error) {
    return error as Error;
  }
};

// Goes level by level: a recursion would run out of stack as well.
const excessOf = (document: unknown): string | undefined => {
  let values = 0;
  let level: readonly unknown[] = [document];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxDepth) return `nested more than ${maxDepth} levels deep`;
    values += level.length;
    level = level.flatMap(membersOf);
  }
  return values > maxValues ? `more than ${maxValues} values` : undefined;
};

const membersOf = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : [];
