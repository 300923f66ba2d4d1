import type { TradeFeedError } from './failures/trade-feed-error.js';
import { createFailure } from './failures/meaning.js';
import { invalidOptions } from './failures/client-meanings.js';

/** What an option must be: the check, and the same in words. */
export interface Rule {
  readonly allowed: string;
  /** The error must not show what was given. */
  readonly isSecret?: true;
  readonly is: (value: unknown) => boolean;
}

/** The longest wait that a timer keeps: beyond 2^31-1 ms Node fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Clamps a wait to what a timer keeps. */
export const clampMs = (ms: number): number => Math.min(ms, MAX_TIMER_MS);

const isNumber = (value: unknown): value is number => typeof value === 'number' && !Number.isNaN(value);

/** A wait that may be none. */
export const durationMs: Rule = { allowed: 'a number of ms, 0 or more', is: (v) => isNumber(v) && v >= 0 };
/** A wait that must be one. */
export const positiveMs: Rule = { allowed: 'a number of ms above 0', is: (v) => isNumber(v) && v > 0 };
/** An object. */
export const anObject: Rule = { allowed: 'an object', is: (v) => typeof v === 'object' && v !== null };
/** `true` or `false`. */
export const aBoolean: Rule = { allowed: 'true or false', is: (v) => typeof v === 'boolean' };
/** A function. */
export const aFunction: Rule = { allowed: 'a function', is: (v) => typeof v === 'function' };
/** An object that has the named method. */
export const objectWith = (method: string, allowed: string): Rule => ({
  allowed,
  is: (v) => anObject.is(v) && aFunction.is((v as Record<string, unknown>)[method]),
});
/** A count of at least one. */
export const positiveCount: Rule = {
  allowed: 'a whole number, 1 or more',
  is: (v) => Number.isSafeInteger(v) && (v as number) >= 1,
};
/** A count that may be without end. */
export const aCount = (least: number): Rule => ({
  allowed: `a whole number, ${least} or more, or Infinity`,
  is: (v) => v === Infinity || (Number.isInteger(v) && (v as number) >= least),
});
/** What keeps the time. */
export const aScheduler: Rule = objectWith('schedule', 'an RxJS scheduler');
/** One of the given words. */
export const oneOf = (...words: readonly string[]): Rule => ({
  allowed: words.map((word) => `'${word}'`).join(' or '),
  is: (v) => words.includes(v as string),
});

/** Makes the error for bad options; it shows a number or a boolean that was given, never a text, which might be a key. */
export const invalidOption = (name: string, allowed: string, value?: unknown): TradeFeedError => {
  const got = isNumber(value) || typeof value === 'boolean' ? `, got ${value}` : '';
  return createFailure(invalidOptions, { stage: 'ticket', option: name, detail: `must be ${allowed}${got}` });
};

type Defined<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

/**
 * Drops what is `undefined` and holds the rest against the rules.
 *
 * @param prefix - put before each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`, naming the first option that is unknown or wrong
 */
export const validated = <T extends object>(
  given: T,
  rules: Readonly<Record<keyof T & string, Rule>>,
  prefix = '',
): Defined<T> => {
  if (!anObject.is(given)) throw invalidOption(prefix.slice(0, -1) || 'options', 'an object');
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name, value] of entries) {
    const rule: Rule | undefined = Object.hasOwn(rules, name) ? rules[name as keyof T & string] : undefined;
    if (rule === undefined)
      throw invalidOption(prefix + name, `left out: the options are ${Object.keys(rules).join(', ')}`);
    if (!rule.is(value)) throw invalidOption(prefix + name, rule.allowed, rule.isSecret ? undefined : value);
  }
  return Object.fromEntries(entries) as Defined<T>;
};

/** Checks what must be given; throws a `TradeFeedError` with code `invalid-options`, naming the first that is missing or wrong. */
export const checkGiven = (given: object, rules: Readonly<Record<string, Rule>>): void => {
  const values = given as Readonly<Record<string, unknown>>;
  for (const [name, { allowed, is }] of Object.entries(rules))
    if (!is(values[name])) throw invalidOption(name, allowed, values[name]);
};
