import { isRight, left } from '../../protocol/either.js';
import type { Check, DecodeIssue } from './decode-failure.js';

/** A document up to this depth and this number of values does not cause a stack overflow. */
const maxDepth = 100;
const maxValues = 10_000;

/**
 * Wraps a check, so that it refuses a document whose depth or size makes the codec run out of stack.
 *
 * Throws all other errors: they come from functions of the user. Also throws the stack overflow of a small document, because its cause is
 * an endless recursion in a function of the user.
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

// Collecting the issues may also overflow the stack: some libraries print the refused value recursively.
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

/** Returns whether an error is the stack overflow of this engine. */
export const isStackOverflow = (error: unknown): boolean => {
  const { name, message } = stackOverflow();
  const fields = Object(error) as Partial<Error>;
  return fields.name === name && fields.message === message;
};

// V8 and JavaScriptCore throw a RangeError, which has other causes, too; SpiderMonkey throws an InternalError. So the function causes a
// stack overflow, to compare.
const stackOverflow = (): Error => {
  const recurse = (): number => recurse() + 1;
  try {
    throw new Error(String(recurse()));
  } catch (error) {
    return error as Error;
  }
};

// Level by level: a recursion would run out of stack as well.
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
