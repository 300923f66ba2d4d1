import { type FailureCode, type FailureFacts, type Stage, TradeFeedError, type Verdict } from './failure.js';

/** One row of the table: what is observed, and what it means. */
export interface Meaning {
  /** The stage that the row is for; absent: any. */
  readonly stage?: Stage;
  /** The HTTP status that the row is for: a number, a class such as `5xx`, or any other one. */
  readonly status?: number | '5xx' | 'other' | undefined;
  /** The close code that the row is for. */
  readonly closeCode?: number | 'other';
  /** The close reason that the row is for; absent: whatever the reason. */
  readonly reason?: string;
  readonly code: FailureCode;
  readonly verdict: Verdict;
  /** What happened, in words. */
  readonly meaning: string;
  /** What to do, in one sentence. */
  readonly advice: string;
}

/**
 * Finds the row of a table for what was observed: the first one that fits.
 *
 * @throws TypeError when none does
 */
export const meaningIn = (
  table: readonly Meaning[],
  { stage, code, status, closeCode, reason }: FailureFacts,
): Meaning => {
  // A code alone is enough to name a row; with a status or a close code, these must fit as well.
  const isBare = status === undefined && closeCode === undefined;
  const row = table.find(
    (row) =>
      (row.stage ?? stage) === stage &&
      (code === undefined ? !isBare : row.code === code) &&
      (isBare || (fits(row.status, status) && fits(row.closeCode, closeCode))) &&
      (row.reason === undefined || row.reason === reason || isBare),
  );
  if (row === undefined) throw new TypeError(`No failure is known for stage ${stage}, code ${code}.`);
  return row;
};

/** Makes the error for what was observed, by the row that it fell to. */
export const errorBy = (
  { code, verdict, meaning, advice }: Meaning,
  { detail, ...facts }: FailureFacts,
): TradeFeedError => {
  const seen = observed({ ...facts, detail });
  const message = `${seen ? `${meaning.slice(0, -1)} (${seen}).` : meaning} ${advice}`;
  return new TradeFeedError({ ...facts, code, verdict, meaning, advice, message });
};

/** Tells whether a pattern of a row takes a status or a close code in. */
export const fits = (pattern: number | string | undefined, value: number | undefined): boolean =>
  pattern === value || (value !== undefined && (pattern === 'other' || pattern === `${Math.floor(value / 100)}xx`));

const observed = ({ status, closeCode, reason, detail }: FailureFacts): string =>
  [
    status !== undefined && `HTTP ${status}`,
    closeCode !== undefined && `close code ${closeCode}`,
    reason && `"${reason}"`,
    detail,
  ]
    .filter(Boolean)
    .join(', ');
