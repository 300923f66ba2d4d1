import type { Meaning } from './meaning.js';

/** What a relay tells of by itself, apart from what it hands on: why a gap is there, why there is no feed, and why it ends a stream. */
export const relayTold: Readonly<Record<'behind' | 'sourceFailed' | 'closing' | 'sessionEnded', Meaning>> = {
  behind: {
    stage: 'stream',
    code: 'relay-behind',
    verdict: 'renew',
    meaning: 'Frames went by while this client was away, or slower than they came.',
    advice: 'Do less for each frame, or let the relay hold more (`capacity`), if this happens often.',
  },
  sourceFailed: {
    stage: 'stream',
    code: 'relay-source-failed',
    verdict: 'stop',
    meaning: 'The feed behind the relay ended with an error of its own.',
    advice: 'See the log of the relay.',
  },
  closing: {
    stage: 'stream',
    code: 'relay-closing',
    verdict: 'backoff',
    meaning: 'The relay shuts down.',
    advice: 'Nothing to do: the feed goes on where it was, from another replica or after the restart.',
  },
  sessionEnded: {
    stage: 'stream',
    code: 'relay-session-ended',
    verdict: 'renew',
    meaning: 'The relay ended the stream, so that the client is authorized again.',
    advice: 'Nothing to do: the feed goes on where it was, if the client may still receive.',
  },
};
