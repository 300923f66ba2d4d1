// How evenly the policy let the clients of a storm come.
import { atMost } from '../lib/goal.mjs';
import { seeded } from '../lib/random.mjs';
import { distance, distanceByChance, largestWithin } from '../lib/waves.mjs';
import { longestMs } from './full-jitter.mjs';

const PREDICTIONS = 200;

/**
 * When the tries of a storm were due, in epoch ms, and when full jitter would have let them come from the same failures.
 *
 * It is asked when each was due, and not when it began: on a busy machine, 2 000 clients in one process are late together. What is
 * due at once, after a stable connection that was cut, is left out: nothing is drawn there.
 *
 * @returns `drawn`: `{ from, longest, wait }` in ms, what the policy added to what the service asked for; `due`; `predicted`, many times
 */
export const triesOf = ({ clients }, policy, seed) => {
  const drawn = clients.flatMap(({ waits }) =>
    waits
      .filter(({ verdict, delayMs }) => delayMs > 0 && verdict !== 'renew')
      .map(({ at, delayMs, attempt, floorMs }) => ({
        from: at + floorMs,
        // On top of what the service asked for comes no more than a first wait.
        longest: longestMs(policy, floorMs > 0 ? 1 : attempt),
        wait: delayMs - floorMs,
      })),
  );
  if (drawn.length === 0) throw new RangeError('Nobody waited: there is nothing to judge.');
  const random = seeded(seed);
  const predict = () => drawn.map(({ from, longest }) => from + random() * longest);
  return {
    drawn,
    due: drawn.map(({ from, wait }) => from + wait),
    predicted: Array.from({ length: PREDICTIONS }, predict),
  };
};

/**
 * The rules that a policy without jitter breaks.
 *
 * @param waveMs - what comes within so many ms is a wave
 */
export const spreadRules = ({ drawn, due, predicted }, waveMs) => {
  const shares = drawn.map(({ longest, wait }) => wait / longest);
  const even = shares.map((_, n) => (n + 0.5) / shares.length);
  const most = rounded(distanceByChance(drawn.length));
  // A tenth above the largest of all that were drawn: what chance makes, but for next to never.
  const largest = Math.ceil(Math.max(...predicted.map((times) => largestWithin(times, waveMs))) * 1.1);
  const some = predicted.slice(0, 20).flat();
  return [
    atMost('waits: distance to an even spread up to the longest', rounded(distance(shares, even)), most),
    atMost('tries: distance to when full jitter lets them come', rounded(distance(due, some)), most),
    atMost(`tries: the largest wave that was due within ${waveMs} ms`, largestWithin(due, waveMs), largest),
  ];
};

/** The same for those alone who were told how long to wait (`Retry-After`). */
export const floorRule = (clients, policy) => {
  const waits = clients.flatMap((client) => client.waits.filter(({ floorMs }) => floorMs > 0));
  const shares = waits.map(({ delayMs, floorMs }) => (delayMs - floorMs) / longestMs(policy, 1));
  const even = shares.map((_, n) => (n + 0.5) / shares.length);
  const found = shares.length === 0 ? NaN : rounded(distance(shares, even));
  return atMost(
    'Retry-After: distance of what is added to an even spread',
    found,
    rounded(distanceByChance(shares.length)),
  );
};

const rounded = (value) => Math.round(value * 1_000) / 1_000;
