/**
 * Follows each pending transaction to what became of it: confirmed, failed, replaced or expired.
 *
 * @packageDocumentation
 */
export { ledger, type LedgerOptions } from './ledger.js';
export type { Because, Confirmed, Expired, Failed, LedgerEntry, LedgerStep, Outcome, OutcomeState } from './outcome.js';
export type { PreviousOutcome, Reorged, Replaced, Unknown, Unseen } from './outcome.js';
export { coverage, leadAt, outcomeStats, type OutcomeStats } from './outcome-stats.js';
export type { SettleOptions } from './settle-options.js';
export { settle } from './settle.js';
