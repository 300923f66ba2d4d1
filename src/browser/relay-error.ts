import {
  createFailure,
  type FailureFacts,
  matches,
  type TradeFeedError,
} from '../protocol/failures/trade-feed-error.js';
import { type Meaning, type RelayFailureCode, relayReports, row } from '../protocol/failures/meanings.js';

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

const again = relayReports.closing.advice;
const refused = ['The relay refuses this client.', 'Sign in again.'] as const;
const failed = ["The relay couldn't answer.", again] as const;

/** The failures that a relay's client observes. The first matching row wins. */
export const relayMeanings: readonly Meaning[] = [
  row({ stage: 'handshake', status: 401 }, 'relay-refused', 'stop', refused),
  row({ stage: 'handshake', status: 403 }, 'relay-refused', 'stop', refused),
  row({ stage: 'handshake', status: 503 }, 'relay-full', 'backoff', ['The relay is full.', again]),
  row({ stage: 'handshake', status: 408 }, 'relay-failed', 'backoff', failed),
  row({ stage: 'handshake', status: 429 }, 'relay-failed', 'backoff', failed),
  row({ stage: 'handshake', status: '5xx' }, 'relay-failed', 'backoff', failed),
  row({ stage: 'handshake', status: 'other' }, 'invalid-relay', 'stop', [
    'No relay answers at this address.',
    'Check the address.',
  ]),
  row({ stage: 'handshake' }, 'relay-unreachable', 'backoff', [
    "The relay didn't answer.",
    'Check the network, the address, and that no proxy in between buffers the answer.',
  ]),
  row({ stage: 'handshake' }, 'relay-headers-failed', 'backoff', [
    "This page's `headers` function failed.",
    'See the cause.',
  ]),
  row({ stage: 'handshake' }, 'relay-authorize-timeout', 'backoff', [
    'The relay took too long to authorize this client.',
    "Nothing to do: the client connects again. If it happens often, make the server's `authorize` faster.",
  ]),
  // Not `renew`: after a relay restarts, all its clients would reconnect at the same moment.
  row({ stage: 'stream' }, 'relay-lost', 'backoff', ['The connection to the relay ended.', again]),
  row({ stage: 'stream' }, 'relay-stalled', 'renew', ['The relay was silent for too long.', again]),
  row({ stage: 'stream' }, 'invalid-relay-data', 'backoff', [
    "The relay's data can't be read.",
    'Look for a proxy that changes it.',
  ]),
];
