import type { RelayFailureCode, Stage, Verdict } from './failure-code.js';
import type { Meaning } from './meaning.js';

const row = (
  stage: Stage,
  status: Meaning['status'],
  code: RelayFailureCode,
  verdict: Verdict,
  meaning: string,
  advice: string,
): Meaning => ({ stage, status, code, verdict, meaning, advice });

const answered = row.bind(undefined, 'handshake');
const detected = row.bind(undefined, 'stream', undefined);

const again = 'Nothing to do: the client connects again.';
const refused = ['relay-refused', 'stop', 'The relay refuses this client.', 'Sign in again.'] as const;
const failed = ['relay-failed', 'backoff', 'The relay could not answer.', again] as const;

/** The meaning of every failure that a client of a relay observes. The first row that matches is used. */
export const relayMeanings: readonly Meaning[] = [
  answered(401, ...refused),
  answered(403, ...refused),
  answered(503, 'relay-full', 'backoff', 'The relay is full.', again),
  answered(408, ...failed),
  answered(429, ...failed),
  answered('5xx', ...failed),
  answered('other', 'invalid-relay', 'stop', 'There is no relay.', 'Check the address.'),
  answered(
    undefined,
    'relay-unreachable',
    'backoff',
    'The relay did not answer.',
    'Check the network and the address.',
  ),
  answered(
    undefined,
    'relay-headers-failed',
    'backoff',
    'The function `headers` of this page failed.',
    'See the cause.',
  ),
  // Not `renew`: when a relay restarts, all its clients would connect again at the same moment.
  detected('relay-lost', 'backoff', 'The connection to the relay ended.', again),
  detected('relay-stalled', 'renew', 'The relay was silent for too long.', again),
  detected(
    'invalid-relay-data',
    'backoff',
    'The data of the relay cannot be read.',
    'Look for a proxy that changes it.',
  ),
];

/** The failures that a relay itself reports: the reasons for a gap, for a missing feed, and for the end of a stream. */
export const relayReports: Readonly<Record<'behind' | 'sourceFailed' | 'closing' | 'sessionEnded', Meaning>> = {
  behind: {
    stage: 'stream',
    code: 'relay-behind',
    verdict: 'renew',
    meaning: 'This client missed frames: it was away, or slower than the feed.',
    advice: 'If this happens often, do less for each frame, or raise `capacity` of the relay.',
  },
  sourceFailed: {
    stage: 'stream',
    code: 'relay-source-failed',
    verdict: 'stop',
    meaning: 'An error of the application stopped the feed.',
    advice: 'See the cause, or the log of the server.',
  },
  closing: {
    stage: 'stream',
    code: 'relay-closing',
    verdict: 'backoff',
    meaning: 'The relay shuts down.',
    advice: again,
  },
  sessionEnded: {
    stage: 'stream',
    code: 'relay-session-ended',
    verdict: 'renew',
    meaning: 'The relay requires this client to authorize again.',
    advice: again,
  },
};
