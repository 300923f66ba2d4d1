import { invalidOptions } from './failures/meanings.js';
import { createFailure, type TradeFeedError } from './failures/trade-feed-error.js';
import { isNumber } from './type-guards.js';

export interface Rule {
  readonly allowed: string;
  /** If `true`, the error doesn't show the value. */
  readonly isSecret?: true;
  /** Says what's wrong with a value, as a continuation of the option's name; `undefined` if `allowed` says enough. */
  readonly problem?: (value: unknown) => string | undefined;
  readonly is: (value: unknown) => boolean;
}

/** The longest delay a timer accepts. Node fires at once if it's above 2^31-1 ms. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export const clampMs = (ms: number): number => Math.min(ms, MAX_TIMER_MS);

export const durationMs: Rule = { allowed: 'a number of ms, 0 or more', is: (v) => isNumber(v) && v >= 0 };
export const positiveMs: Rule = { allowed: 'a number of ms above 0', is: (v) => isNumber(v) && v > 0 };
export const timerMs: Rule = {
  allowed: `a number of ms, above 0 and at most ${MAX_TIMER_MS}`,
  is: (v) => isNumber(v) && v > 0 && v <= MAX_TIMER_MS,
};
export const anObject: Rule = {
  allowed: 'an object',
  is: (v) => typeof v === 'object' && v !== null && !Array.isArray(v),
};
export const aBoolean: Rule = { allowed: 'true or false', is: (v) => typeof v === 'boolean' };
export const aFunction: Rule = { allowed: 'a function', is: (v) => typeof v === 'function' };
export const objectWith = (method: string, allowed: string): Rule => ({
  allowed,
  is: (v) => anObject.is(v) && aFunction.is((v as Record<string, unknown>)[method]),
});
export const integerIn = (from: number, to = Infinity): Rule => ({
  allowed: `a whole number${to < Infinity ? ` from ${from} to ${to}` : `, ${from} or more`}`,
  is: (v) => Number.isSafeInteger(v) && (v as number) >= from && (v as number) <= to,
});
// A separate rule, because pages load it without `integerIn`.
export const positiveCount: Rule = {
  allowed: 'a whole number, 1 or more',
  is: (v) => Number.isSafeInteger(v) && (v as number) >= 1,
};
export const aCount = (least: number): Rule => ({
  allowed: `a whole number, ${least} or more, or Infinity`,
  is: (v) => v === Infinity || (Number.isInteger(v) && (v as number) >= least),
});
export const aScheduler: Rule = objectWith('schedule', 'an RxJS scheduler');
export const aName: Rule = {
  allowed: '1 to 80 letters, digits, - or _',
  is: (v) => typeof v === 'string' && /^[\w-]{1,80}$/.test(v),
};
export const oneOf = (...words: readonly string[]): Rule => {
  const allowed = words.map((word) => `'${word}'`).join(' or ');
  return {
    allowed,
    // Shows short words only: anything longer might be a key.
    problem: (v) => (typeof v === 'string' && /^[a-z]{1,12}$/i.test(v) ? `must be ${allowed}, got '${v}'` : undefined),
    is: (v) => words.includes(v as string),
  };
};

export const invalidOption = (option: string, allowed: string, value?: unknown): TradeFeedError =>
  wrongOption(option, mustBe(allowed, value));

/** Creates the error for a value that breaks a rule. `source`: where the value came from, in parentheses. */
export const refusedOption = (option: string, rule: Rule, value: unknown, source = ''): TradeFeedError =>
  wrongOption(option, source + (rule.problem?.(value) ?? mustBe(rule.allowed, rule.isSecret ? undefined : value)));

const wrongOption = (option: string, detail: string): TradeFeedError =>
  createFailure(invalidOptions, { stage: 'ticket', option, detail });

// Shows numbers and booleans, but never text, which might be a key.
export const mustBe = (allowed: string, value?: unknown): string =>
  `must be ${allowed}${isNumber(value) || typeof value === 'boolean' ? `, got ${value}` : ''}`;

type Defined<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

/**
 * Returns the options that aren't `undefined`, or throws for the first unknown or wrong one. `prefix` precedes its
 * name.
 */
export const validated = <T extends object>(
  options: T,
  rules: Readonly<Record<keyof T & string, Rule>>,
  prefix = '',
): Defined<T> => {
  if (!anObject.is(options)) throw invalidOption(prefix.slice(0, -1) || 'options', 'an object');
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    const rule = Object.hasOwn(rules, name) ? rules[name as keyof T & string] : undefined;
    if (rule === undefined) throw wrongOption(prefix + name, unknownName(name, Object.keys(rules), prefix));
    if (!rule.is(value)) throw refusedOption(prefix + name, rule, value);
  }
  return Object.fromEntries(given) as Defined<T>;
};

const unknownName = (name: string, known: readonly string[], prefix: string): string => {
  const near = nearest(name, known);
  const question = near === undefined ? '' : `. Did you mean \`${prefix}${near}\`?`;
  return `doesn't exist: the options are ${known.join(', ')}${question}`;
};

/** Returns the word that was probably meant: at most a third of its letters differ, whatever their case. */
export const nearest = (typed: string, words: readonly string[]): string | undefined => {
  const lower = typed.toLowerCase();
  const distances = words.map((word) => distance(lower, word.toLowerCase()) / word.length);
  const least = Math.min(...distances);
  return least <= 1 / 3 ? words[distances.indexOf(least)] : undefined;
};

/** Returns how many letters to insert, remove or replace (Levenshtein, 1966). */
const distance = (one: string, other: string): number => {
  let row = Array.from(`${other}.`, (_, n) => n);
  for (const [at, letter] of [...one].entries()) {
    let left = at;
    row = row.map(
      (above, n) =>
        (left =
          n === 0 ? at + 1 : Math.min(above + 1, left + 1, (row[n - 1] as number) + Number(letter !== other[n - 1]))),
    );
  }
  return row[other.length] as number;
};

export const checkRequired = (required: object, rules: Readonly<Record<string, Rule>>, prefix = ''): void => {
  const values = required as Readonly<Record<string, unknown>>;
  for (const [name, rule] of Object.entries(rules))
    if (!rule.is(values[name])) throw refusedOption(prefix + name, rule, values[name]);
};
