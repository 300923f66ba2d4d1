import type { FailureCode, Stage, Verdict } from './failure-code.js';
import { type FailureFacts, type FailureFields, TradeFeedError } from './trade-feed-error.js';

/** One row of a failure table: what was observed, and what it means. */
export interface Meaning {
  /** The stage that the row is for; absent: any. */
  readonly stage?: Stage;
  /** The HTTP status that the row is for: a number, a class such as `5xx`, or any other one. */
  readonly status?: number | '5xx' | 'other' | undefined;
  /** The close code that the row is for. */
  readonly closeCode?: number | 'other';
  /** The close reason that the row is for; absent: any. */
  readonly reason?: string;
  readonly code: FailureCode;
  readonly verdict: Verdict;
  /** What happened, in one sentence with a full stop. */
  readonly meaning: string;
  /** What to do, in one sentence. */
  readonly advice: string;
}

/**
 * Returns the first row of a table that matches what was observed.
 *
 * @throws TypeError when no row matches
 */
export const findMeaning = (
  table: readonly Meaning[],
  { stage, code, status, closeCode, reason }: FailureFacts,
): Meaning => {
  // A code alone names a row. With a status or a close code, these must match as well.
  const isBare = status === undefined && closeCode === undefined;
  const row = table.find(
    (row) =>
      (row.stage ?? stage) === stage &&
      (code === undefined ? !isBare : row.code === code) &&
      (isBare || (matches(row.status, status) && matches(row.closeCode, closeCode))) &&
      (row.reason === undefined || row.reason === reason || isBare),
  );
  if (row === undefined) throw new TypeError(`No failure is known for stage ${stage}, code ${code}.`);
  return row;
};

/** Returns whether a row with this pattern is for a status or a close code. */
export const matches = (pattern: number | string | undefined, value: number | undefined): boolean =>
  pattern === value || (value !== undefined && (pattern === 'other' || pattern === `${Math.floor(value / 100)}xx`));

/** The facts for a failure, with those that only this library adds: see {@link FailureFields}. */
type Observed = FailureFacts & Pick<FailureFields, 'option' | 'previous'>;

/** Creates the error for what was observed, by the row of a table. The facts contain the whole `detail` of the message. */
export const createFailure = ({ code, verdict, meaning, advice }: Meaning, facts: Observed): TradeFeedError =>
  new TradeFeedError({ ...facts, code, verdict, summary: meaning, meaning, advice });

/** Joins the parts of a `detail`. Returns `undefined` without any. */
export const joinDetails = (...parts: readonly (string | false | undefined)[]): string | undefined =>
  parts.filter(Boolean).join(', ') || undefined;
