// Loaded into an example's process before it runs: writes down each key and ticket that the library reveals, so that the test
// can look for them in what the example printed.
import { appendFileSync } from 'node:fs';
import { Secret } from 'rx-trade-feed';

const { reveal } = Secret.prototype;

Secret.prototype.reveal = function revealAndTell() {
  const value = reveal.call(this);
  appendFileSync(process.env.SECRETS_FILE, `${value}\n`);
  return value;
};
