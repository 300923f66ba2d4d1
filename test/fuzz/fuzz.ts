import { it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { appendFileSync } from 'node:fs';
import { cases } from '../support/cases.js';

const { FUZZ_SEED, FUZZ_PATH, FUZZ_RUNS, FUZZ_REPORT } = process.env;

/** The seed of this run. It's part of the titles, so failed tests show it. */
export const seed = Number(FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** How many cases run at the same time, because a case mostly waits. */
const LANES = 24;
/** How many smaller cases to try after a failure. */
const MOST_SHRINKS = 300;
/** The time limit of a case on a busy machine, in ms. */
const CASE_MS = 250;

/**
 * Declares a test of a property of random values. `holds` returns the name of a value's outcome, and the report counts them by `property`.
 * A failure names the seed and the path of the smallest case. Run only that with `FUZZ_SEED` and `FUZZ_PATH`.
 */
export const fuzz = <T>(
  title: string,
  property: string,
  byDefault: number,
  values: Arbitrary<T>,
  holds: (value: T) => Promise<string>,
): void => {
  const runs = Number(FUZZ_RUNS ?? cases(byDefault));
  it(title, () => check(property, runs, values, holds), 2 * BOUND_MS + runs * CASE_MS);
};

const check = async <T>(
  property: string,
  runs: number,
  values: Arbitrary<T>,
  holds: (value: T) => Promise<string>,
): Promise<void> => {
  const outcomes: Record<string, number> = {};
  const startedMs = performance.now();
  let failing: number | undefined;
  let shrinks = 0;
  const count = async (n: number, value: T): Promise<void> => {
    // One lane searches for the smallest failing case; the others skip the rest.
    if (failing !== undefined && (failing !== n || (shrinks += 1) > MOST_SHRINKS)) return;
    try {
      const outcome = await holds(value);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    } catch (error) {
      if ((failing ??= n) === n) throw error;
    }
  };
  const lanes = FUZZ_PATH === undefined ? Math.min(LANES, runs) : 1;
  const path = FUZZ_PATH !== undefined && { path: FUZZ_PATH };
  const details = await Promise.all(
    Array.from({ length: lanes }, (_, n) => {
      const property = fc.asyncProperty(values, (value) => count(n, value));
      return fc.check(property, { seed: seed + n, numRuns: Math.ceil(runs / lanes), ...path });
    }),
  );
  const failed = details.find((one) => one.failed);
  const tried = details.reduce((sum, { numRuns }) => sum + numRuns, 0);
  const seconds = secondsSince(startedMs);
  report({ property, cases: tried, seed, failures: Number(failed !== undefined), seconds, outcomes });
  if (failed) throw new Error(`${property}: ${fc.defaultReportMessage(failed)}\n${String(failed.errorInstance)}`);
};

/** Seconds since a time of `performance.now()`, to a tenth. */
export const secondsSince = (startedMs: number): number => Math.round((performance.now() - startedMs) / 100) / 10;

/** Adds a row to the report of `npm run reliability -- fuzz`. */
export const report = (row: Readonly<Record<string, unknown>>): void => {
  if (FUZZ_REPORT !== undefined) appendFileSync(FUZZ_REPORT, `${JSON.stringify(row)}\n`);
};

/** After this time a connection counts as hung, in ms: no busy machine needs it, and it's shorter than Node's own limits. */
export const BOUND_MS = 50_000;
/** The timeout of a client whose server answers, in ms: no machine is that busy. */
export const ANSWER_MS = 40_000;

/** Returns the result of a promise. Throws if it hangs. */
export const within = async <T>(ms: number, what: string, promise: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${what} took more than ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};
