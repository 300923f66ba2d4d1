import type { FailureFacts, RelayFailureCode, Stage, TradeFeedError, Verdict } from './failure.js';
import { errorBy, fits, type Meaning } from './meaning.js';

const again = 'Nothing to do: it is tried again.';
const goesOn = 'Nothing to do: the feed goes on where it was.';

const row = (
  stage: Stage,
  status: Meaning['status'],
  code: RelayFailureCode,
  verdict: Verdict,
  meaning: string,
  advice: string,
): Meaning => ({ stage, status, code, verdict, meaning, advice });

const answer = row.bind(undefined, 'handshake');
const seen = row.bind(undefined, 'stream', undefined);

const refused = ['relay-refused', 'stop', 'The relay refuses this client.', 'Sign in again.'] as const;
const failed = ['relay-failed', 'backoff', 'The relay could not answer.', again] as const;

/** The meaning of every failure between a relay and those who receive from it. The first row that fits counts. */
export const relayMeanings: readonly Meaning[] = [
  answer(401, ...refused),
  answer(403, ...refused),
  answer(503, 'relay-full', 'backoff', 'The relay is full.', again),
  answer(408, ...failed),
  answer(429, ...failed),
  answer('5xx', ...failed),
  answer('other', 'invalid-relay', 'stop', 'There is no relay.', 'Check the address.'),
  answer(undefined, 'relay-unreachable', 'backoff', 'The relay did not answer.', 'Check the network and the address.'),
  answer(
    undefined,
    'relay-headers-failed',
    'backoff',
    'The `headers` function of this page gave no usable headers.',
    'See the cause; the function is called again.',
  ),
  // Not at once: when a relay is restarted, all its clients come back together.
  seen('relay-lost', 'backoff', 'The connection to the relay ended.', goesOn),
  seen('relay-stalled', 'renew', 'The relay fell silent.', goesOn),
  seen('invalid-relay-data', 'backoff', 'Its data cannot be read.', 'Look for a proxy that changes it.'),
];

/** What was observed of a relay: an HTTP status, or what the client saw by itself. */
export interface RelayFailureFacts extends Omit<FailureFacts, 'stage' | 'code' | 'closeCode' | 'reason'> {
  readonly code?: RelayFailureCode | undefined;
}

/**
 * Makes the {@link TradeFeedError} for what was observed of a relay: code, stage, verdict, message and advice come from the table.
 *
 * Also of use in tests of your own page.
 *
 * @param facts - a status or a code
 * @throws TypeError when the facts name no failure that a client sees
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
    code === undefined ? status !== undefined && fits(each.status, status) : each.code === code,
  );
  if (meaning?.stage === undefined) throw new TypeError('Unknown failure.');
  return errorBy(meaning, { ...facts, stage: meaning.stage });
};
