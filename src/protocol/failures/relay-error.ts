import type { RelayFailureCode } from './failure-code.js';
import { createFailure, joinDetails, matches } from './meaning.js';
import { relayMeanings } from './relay-meanings.js';
import type { FailureFacts, TradeFeedError } from './trade-feed-error.js';

/** The facts that a client of a relay observed: an HTTP status, or the code of a failure that the client itself detected. */
export interface RelayFailureFacts extends Omit<FailureFacts, 'stage' | 'code' | 'closeCode' | 'reason'> {
  readonly code?: RelayFailureCode | undefined;
}

/**
 * Creates the {@link TradeFeedError} for the facts that a client of a relay observed. The table defines its code, stage, verdict, message
 * and advice.
 *
 * Also useful in tests of your page.
 *
 * @param facts - a status or a code
 * @throws TypeError when no row of the table matches: a client cannot observe this failure
 * @example
 * ```ts
 * import { relayError } from 'rx-trade-feed/browser';
 *
 * relayError({ code: 'relay-lost' }).verdict; // 'backoff'
 * relayError({ status: 401 }).code; // 'relay-refused'
 * ```
 */
export const relayError = (facts: RelayFailureFacts): TradeFeedError => {
  const { code, status, detail } = facts;
  const meaning = relayMeanings.find((each) =>
    code === undefined ? status !== undefined && matches(each.status, status) : each.code === code,
  );
  if (meaning?.stage === undefined) throw new TypeError('Unknown failure.');
  const observed = joinDetails(status !== undefined && `HTTP ${status}`, detail);
  return createFailure(meaning, { ...facts, stage: meaning.stage, detail: observed });
};
