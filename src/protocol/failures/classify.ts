import { printable } from '../printable.js';
import type { Verdict } from './failure-code.js';
import { createFailure, findMeaning, joinDetails } from './meaning.js';
import { serviceMeanings } from './service-meanings.js';
import type { FailureFacts, TradeFeedError } from './trade-feed-error.js';

/**
 * Returns the verdict of a failure, by the table of the contract's section 7: one of `stop`, `renew`, `wait`, `backoff`.
 *
 * Pure. Accepts a {@link TradeFeedError} or plain facts. A status or close code without a row matches the row for all other values.
 *
 * @param failure - the stage with a status, a close code and its reason, or a code
 * @throws TypeError when no row matches: the facts contain no status, no close code and no known code of that stage
 * @see the contract, section 7
 * @example
 * ```ts
 * import { classify } from 'rx-trade-feed';
 *
 * classify({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }); // 'stop'
 * classify({ stage: 'ticket', status: 503 }); // 'backoff'
 * ```
 */
export const classify = (failure: FailureFacts): Verdict => findMeaning(serviceMeanings, failure).verdict;

/**
 * Creates the {@link TradeFeedError} for the observed facts. The table defines its code, verdict, message and advice.
 *
 * Also useful in tests of your error handling.
 *
 * @param facts - see {@link FailureFacts}
 * @throws TypeError when no row of the table matches
 * @example
 * ```ts
 * import { createTradeFeedError } from 'rx-trade-feed';
 *
 * createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' }).code; // 'server-shutdown'
 * ```
 */
export const createTradeFeedError = (facts: FailureFacts): TradeFeedError => {
  const { status, closeCode, reason, detail } = facts;
  // The message goes to logs, so its texts are made printable. The field `reason` contains the reason exactly as sent.
  const shown = reason && onOneLine(reason);
  const observed = joinDetails(
    status !== undefined && `HTTP ${status}`,
    closeCode !== undefined && `close code ${closeCode}`,
    shown && `"${shown}"`,
    detail && onOneLine(detail),
  );
  return createFailure(findMeaning(serviceMeanings, facts), { ...facts, detail: observed });
};

const onOneLine = (text: string): string => printable(text.trim());
