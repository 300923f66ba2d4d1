import type { Tagged } from './tagged.js';

/** What the text of a guard is written with. */
export interface Writer {
  /** Gives the name of a value of the user's, which is handed over as it is. */
  readonly capture: (value: unknown) => string;
  /** Gives the expression that tests the variable `x`. */
  readonly test: (codec: Tagged, x: string) => string;
  /** Gives the name of the function for a type. */
  readonly name: (codec: Tagged) => string;
}

/** Writes a name or a text of the user's as a literal: since ES2019, whatever JSON writes is one. */
export const quoted = (value: string): string => JSON.stringify(value);

/** Writes what `t.literal` was given. */
export const literal = (value: unknown, { capture }: Writer): string => {
  if (typeof value === 'string') return quoted(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : capture(value);
};

/** Writes the test for what io-ts takes for a record. */
export const isRecord = (x: string): string => `(typeof ${x} === 'object' && ${x} !== null && !isArray(${x}))`;

/** Writes that one of the tests must hold. */
export const anyOf = (tests: readonly string[]): string => `(${tests.join(' || ') || 'false'})`;

/** Writes that all of the tests must hold. */
export const allOf = (tests: readonly string[]): string => `(${tests.join(' && ') || 'true'})`;

/** Writes the statement that refuses a document unless a test holds. */
export const demand = (test: string): string => `if (!(${test})) return false;`;
