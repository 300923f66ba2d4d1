import fc, { type Arbitrary } from 'fast-check';
import { appendFileSync } from 'node:fs';
import { cases } from '../support/cases.js';

const { FUZZ_SEED, FUZZ_PATH, FUZZ_RUNS, FUZZ_REPORT } = process.env;

/** The seed of this run. It is part of the titles, so each failed test shows it. */
export const seed = Number(FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Returns how many cases a property runs: `FUZZ_RUNS`, or the default. */
export const runsOf = (byDefault: number): number => Number(FUZZ_RUNS ?? cases(byDefault));

/** Returns the time limit for a number of cases, in ms, on a busy machine. */
export const timeoutFor = (byDefault: number): number => 60_000 + runsOf(byDefault) * 100;

/** The number of cases that run at the same time. A case waits most of its time. */
const LANES = 24;
/** The number of smaller cases to try after a failure. */
const MOST_SHRINKS = 300;

/**
 * Checks a property with random values. `holds` returns a name for the outcome of a value, and the outcomes are counted.
 *
 * A failure is reported with the seed and the path of the smallest case. Set both as `FUZZ_SEED` and `FUZZ_PATH` to run that case alone.
 */
export const fuzz = async <T>(
  property: string,
  values: Arbitrary<T>,
  byDefault: number,
  holds: (value: T) => Promise<string>,
): Promise<void> => {
  const runs = runsOf(byDefault);
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
  const lane = async (n: number) =>
    fc.check(
      fc.asyncProperty(values, (value) => count(n, value)),
      {
        seed: seed + n,
        numRuns: Math.ceil(runs / lanes),
        ...(FUZZ_PATH !== undefined && { path: FUZZ_PATH }),
      },
    );
  const details = await Promise.all(Array.from({ length: lanes }, (_, n) => lane(n)));
  const failed = details.find((one) => one.failed);
  const tried = details.reduce((sum, { numRuns }) => sum + numRuns, 0);
  report({
    property,
    cases: tried,
    seed,
    failures: Number(failed !== undefined),
    seconds: secondsSince(startedMs),
    outcomes,
  });
  if (failed) throw new Error(`${property}: ${fc.defaultReportMessage(failed)}\n${String(failed.errorInstance)}`);
};

/** Seconds since a time of `performance.now()`, to a tenth. */
export const secondsSince = (startedMs: number): number => Math.round((performance.now() - startedMs) / 100) / 10;

/** Adds a row to the report of `npm run reliability -- fuzz`. */
export const report = (row: Readonly<Record<string, unknown>>): void => {
  if (FUZZ_REPORT !== undefined) appendFileSync(FUZZ_REPORT, `${JSON.stringify(row)}\n`);
};

/** Returns the result of a promise. Throws if the promise hangs. */
export const within = async <T>(ms: number, what: string, promise: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs: ${what} took more than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};
