import type { FailureCode, Stage, Verdict } from './failure-code.js';
import { type FailureFacts, type FailureFields, TradeFeedError } from './trade-feed-error.js';

/** One row of a failure table: what was observed, and what it means. */
export interface Meaning {
  /** The stage that the row matches; absent: any. */
  readonly stage?: Stage;
  /** The HTTP status that the row matches: a number, `5xx` for 500 to 599, or `other` for any status. */
  readonly status?: number | '5xx' | 'other' | undefined;
  /** The close code that the row matches; `other`: any code. */
  readonly closeCode?: number | 'other';
  /** The close reason that the row matches; absent: any. */
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
  // Without a status and a close code, the failure code is enough. Otherwise they must match as well.
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

/** Returns whether the pattern of a row matches a status or a close code. */
export const matches = (pattern: number | string | undefined, value: number | undefined): boolean =>
  pattern === value || (value !== undefined && (pattern === 'other' || pattern === `${Math.floor(value / 100)}xx`));

/** The facts of a failure, and the fields that only this library sets. */
type Observed = FailureFacts & Pick<FailureFields, 'option' | 'previous'>;

/** Creates the error for observed facts from the row of a table. The facts contain the complete `detail` of the message. */
export const createFailure = ({ code, verdict, meaning, advice }: Meaning, facts: Observed): TradeFeedError =>
  new TradeFeedError({ ...facts, code, verdict, summary: meaning, meaning, advice });

/** Joins the parts of a `detail`. Returns `undefined` without any. */
export const joinDetails = (...parts: readonly (string | false | undefined)[]): string | undefined =>
  parts.filter(Boolean).join(', ') || undefined;
