import type { TradeFeedError } from './failures/trade-feed-error.js';
import { createFailure } from './failures/meaning.js';
import { invalidOptions } from './failures/client-meanings.js';
import { isNumber } from './type-guards.js';

/** A rule for an option: the check, and its description. */
export interface Rule {
  readonly allowed: string;
  /** If `true`, the error does not show the value. */
  readonly isSecret?: true;
  readonly is: (value: unknown) => boolean;
}

/** The longest delay of a timer. Node fires at once for a delay above 2^31-1 ms. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Limits a wait to the longest delay of a timer. */
export const clampMs = (ms: number): number => Math.min(ms, MAX_TIMER_MS);

/** A wait in ms, which may be 0. */
export const durationMs: Rule = { allowed: 'a number of ms, 0 or more', is: (v) => isNumber(v) && v >= 0 };
/** A wait in ms above 0. */
export const positiveMs: Rule = { allowed: 'a number of ms above 0', is: (v) => isNumber(v) && v > 0 };
/** A wait in ms above 0 that a timer can have. */
export const timerMs: Rule = {
  allowed: `a number of ms, above 0 and at most ${MAX_TIMER_MS}`,
  is: (v) => isNumber(v) && v > 0 && v <= MAX_TIMER_MS,
};
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
/** A count that may be Infinity. */
export const aCount = (least: number): Rule => ({
  allowed: `a whole number, ${least} or more, or Infinity`,
  is: (v) => v === Infinity || (Number.isInteger(v) && (v as number) >= least),
});
/** An RxJS scheduler. */
export const aScheduler: Rule = objectWith('schedule', 'an RxJS scheduler');
/** One of these words. */
export const oneOf = (...words: readonly string[]): Rule => ({
  allowed: words.map((word) => `'${word}'`).join(' or '),
  is: (v) => words.includes(v as string),
});

/** Creates the error for an invalid option. It shows a wrong number or boolean, but never a string, which might be a key. */
export const invalidOption = (name: string, allowed: string, value?: unknown): TradeFeedError => {
  const got = isNumber(value) || typeof value === 'boolean' ? `, got ${value}` : '';
  return createFailure(invalidOptions, { stage: 'ticket', option: name, detail: `must be ${allowed}${got}` });
};

type Defined<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

/**
 * Checks options against rules, and returns those that are not `undefined`.
 *
 * @param prefix - precedes each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`, naming the first option that is unknown or wrong
 */
export const validated = <T extends object>(
  options: T,
  rules: Readonly<Record<keyof T & string, Rule>>,
  prefix = '',
): Defined<T> => {
  if (!anObject.is(options)) throw invalidOption(prefix.slice(0, -1) || 'options', 'an object');
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of entries) {
    const rule: Rule | undefined = Object.hasOwn(rules, name) ? rules[name as keyof T & string] : undefined;
    if (rule === undefined)
      throw invalidOption(prefix + name, `left out: the options are ${Object.keys(rules).join(', ')}`);
    if (!rule.is(value)) throw invalidOption(prefix + name, rule.allowed, rule.isSecret ? undefined : value);
  }
  return Object.fromEntries(entries) as Defined<T>;
};

/** Checks required values. Throws a `TradeFeedError` with code `invalid-options` for the first one that is missing or wrong. */
export const checkRequired = (required: object, rules: Readonly<Record<string, Rule>>, prefix = ''): void => {
  const values = required as Readonly<Record<string, unknown>>;
  for (const [name, { allowed, is }] of Object.entries(rules))
    if (!is(values[name])) throw invalidOption(prefix + name, allowed, values[name]);
};
