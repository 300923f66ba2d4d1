import { printable } from '../printable.js';
import type { Verdict } from './failure-code.js';
import { createFailure, findMeaning, joinDetails } from './meaning.js';
import { serviceMeanings } from './service-meanings.js';
import type { FailureFacts, TradeFeedError } from './trade-feed-error.js';

/**
 * Returns the verdict of a failure, by the table of the contract's section 7: one of `stop`, `renew`, `wait`, `backoff`.
 *
 * Pure. Takes a {@link TradeFeedError} or bare facts. A status or close code that no row names matches the row of all others.
 *
 * @param failure - the stage with a status, a close code and its reason, or a code
 * @throws TypeError when the facts name no failure: no status, close code or known code at that stage
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
 * Creates the {@link TradeFeedError} for what was observed. Code, verdict, message and advice come from the table.
 *
 * Also useful in tests of your error handling.
 *
 * @param facts - see {@link FailureFacts}
 * @throws TypeError when the facts name no failure
 * @example
 * ```ts
 * import { createTradeFeedError } from 'rx-trade-feed';
 *
 * createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown' }).code; // 'server-shutdown'
 * ```
 */
export const createTradeFeedError = (facts: FailureFacts): TradeFeedError => {
  const { status, closeCode, reason, detail } = facts;
  // The service writes the reason, and messages go to logs. The field has the reason as it was sent.
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
