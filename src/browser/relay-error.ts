import {
  createFailure,
  type FailureFacts,
  matches,
  type TradeFeedError,
} from '../protocol/failures/trade-feed-error.js';
import { type RelayFailureCode, relayMeanings } from '../protocol/failures/meanings.js';

/** What a client of a relay observed: an HTTP status, or the code of a failure that it detected itself. */
export interface RelayFailureFacts extends Omit<FailureFacts, 'stage' | 'code' | 'closeCode' | 'reason'> {
  readonly code?: RelayFailureCode | undefined;
}

/**
 * Creates the {@link TradeFeedError} for what a client of a relay observed. The table supplies its code, stage,
 * verdict, message and advice.
 *
 * Handy in tests of your page.
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
  const { code, status } = facts;
  const meaning = relayMeanings.find((each) =>
    code === undefined ? status !== undefined && matches(each.status, status) : each.code === code,
  );
  if (meaning?.stage === undefined)
    throw new TypeError(`No relay failure is known for code ${code}, status ${status}.`);
  return createFailure(meaning, { ...facts, stage: meaning.stage });
};
