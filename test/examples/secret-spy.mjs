// Loaded before an example runs: writes each key and ticket that the library reveals to a file. The test then searches the
// output of the example for them.
import { appendFileSync } from 'node:fs';
import { Secret } from 'rx-trade-feed';

const { reveal } = Secret.prototype;

Secret.prototype.reveal = function revealAndLog() {
  const value = reveal.call(this);
  appendFileSync(process.env.SECRETS_FILE, `${value}\n`);
  return value;
};
