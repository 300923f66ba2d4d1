// Loaded before an example runs: writes each key and ticket that the library reveals to a file, so that the test can
// search the example's output for them.
import { appendFileSync } from 'node:fs';
import { Secret } from 'rx-trade-feed';

const { reveal } = Secret.prototype;

Secret.prototype.reveal = function revealAndLog() {
  const value = reveal.call(this);
  appendFileSync(process.env.SECRETS_FILE, `${value}\n`);
  return value;
};
