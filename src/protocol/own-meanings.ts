import type { Meaning } from './meaning.js';

/** What a bad option means. No answer of a service stands behind it. */
export const invalidOptions: Meaning = {
  code: 'invalid-options',
  verdict: 'stop',
  meaning: 'The options are not valid.',
  advice: 'Correct the option that is named here.',
};

/** What it means that the reconnects are used up. */
export const retriesExhausted: Meaning = {
  code: 'retries-exhausted',
  verdict: 'stop',
  meaning: 'The feed gave up after `maxAttempts` reconnects without a stable connection.',
  advice: 'See the cause; raise `backoff.maxAttempts` to go on longer.',
};
