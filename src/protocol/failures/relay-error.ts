import type { RelayFailureCode } from './failure-code.js';
import { createFailure, joinDetails, matches } from './meaning.js';
import { relayMeanings } from './relay-meanings.js';
import type { FailureFacts, TradeFeedError } from './trade-feed-error.js';

/** What a client of a relay observed: an HTTP status, or the code of a failure that the client itself detected. */
export interface RelayFailureFacts extends Omit<FailureFacts, 'stage' | 'code' | 'closeCode' | 'reason'> {
  readonly code?: RelayFailureCode | undefined;
}

/**
 * Creates the {@link TradeFeedError} for what a client of a relay observed. Code, stage, verdict, message and advice come from the table.
 *
 * Also useful in tests of your page.
 *
 * @param facts - a status or a code
 * @throws TypeError when a client cannot observe such a failure
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
