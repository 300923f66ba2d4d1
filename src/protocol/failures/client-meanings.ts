import type { Meaning } from './meaning.js';

/** An option of the caller is not valid. */
export const invalidOptions: Meaning = {
  code: 'invalid-options',
  verdict: 'stop',
  meaning: 'The options are not valid.',
  advice: 'Correct the option that is named here.',
};

/** The policy allows no more reconnects. */
export const retriesExhausted: Meaning = {
  code: 'retries-exhausted',
  verdict: 'stop',
  meaning: 'The feed gave up after `maxAttempts` reconnects without a stable connection.',
  advice: 'See the cause; set a larger `backoff.maxAttempts` to allow more reconnects.',
};

/** The gap between two subscriptions: `repeat`, `concat` or `switchMap` have subscribed to the feed again. */
export const subscribedAgain: Meaning = {
  code: 'connection-closed',
  verdict: 'backoff',
  meaning: 'The feed ended, and was subscribed to again.',
  advice: 'Nothing to do: the frames of that time are missing.',
};

/** The gap between two recordings to the same file. */
export const recordingPaused: Meaning = {
  code: 'connection-closed',
  verdict: 'backoff',
  meaning: 'The recording stopped and was continued later.',
  advice: 'Nothing to do: the frames of that time are not in the recording.',
};

/** A custom source of events has completed. */
export const sourceCompleted: Meaning = {
  code: 'relay-source-failed',
  verdict: 'stop',
  meaning: 'The feed is over: its source completed.',
  advice: 'Restart the feed to receive more.',
};
