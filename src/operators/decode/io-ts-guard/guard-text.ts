import type { Tagged } from './tagged.js';

/** The functions that write parts of a guard. */
export interface Writer {
  /** Returns the name of a user value, which is passed to the guard unchanged. */
  readonly capture: (value: unknown) => string;
  /** Returns the expression that tests the variable `x`. */
  readonly test: (codec: Tagged, x: string) => string;
  /** Returns the name of the function that tests a type. */
  readonly name: (codec: Tagged) => string;
}

/** Writes a name or text of the user as a literal. Since ES2019, all JSON is valid JavaScript. */
export const quoted = (value: string): string => JSON.stringify(value);

/** Writes the value of a `t.literal`. */
export const literal = (value: unknown, { capture }: Writer): string => {
  if (typeof value === 'string') return quoted(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : capture(value);
};

/** Writes the test for a record, as io-ts defines it. */
export const isRecord = (x: string): string => `(typeof ${x} === 'object' && ${x} !== null && !isArray(${x}))`;

/** Writes a test that passes if one of the tests passes. */
export const anyOf = (tests: readonly string[]): string => `(${tests.join(' || ') || 'false'})`;

/** Writes a test that passes if all tests pass. */
export const allOf = (tests: readonly string[]): string => `(${tests.join(' && ') || 'true'})`;

/** Writes the statement that refuses a document if a test fails. */
export const demand = (test: string): string => `if (!(${test})) return false;`;
