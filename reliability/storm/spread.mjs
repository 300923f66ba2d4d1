// The rules about how evenly the attempts of a storm are spread, and what full jitter predicts: without the code of the library.
import { atMost } from '../lib/report.mjs';
import { seeded } from '../lib/random.mjs';

/** How often the attempts of a storm are predicted. */
const PREDICTIONS = 200;

/**
 * Returns when the attempts of a storm were due, in epoch ms, and when full jitter would have made them due after the same failures.
 *
 * It uses the times at which attempts were due, because 2,000 clients in one process on a busy machine begin late together. Attempts
 * without a wait, after a stable connection that was cut, are left out.
 *
 * @returns `drawn`: `{ from, longest, wait }` in ms, what the policy added to Retry-After; `due`; `predicted`: many predictions
 */
export const attemptsOf = ({ clients }, policy, seed) => {
  const drawn = clients.flatMap(({ waits }) =>
    waits
      .filter(({ verdict, delayMs }) => delayMs > 0 && verdict !== 'renew')
      .map(({ at, delayMs, attempt, floorMs }) => ({
        from: at + floorMs,
        // The policy adds at most a first wait to Retry-After.
        longest: longestMs(policy, floorMs > 0 ? 1 : attempt),
        wait: delayMs - floorMs,
      })),
  );
  if (drawn.length === 0) throw new RangeError('No client waited, so there is nothing to check.');
  const random = seeded(seed);
  const predict = () => drawn.map(({ from, longest }) => from + random() * longest);
  return {
    drawn,
    due: drawn.map(({ from, wait }) => from + wait),
    predicted: Array.from({ length: PREDICTIONS }, predict),
  };
};

/**
 * Returns the rules that a policy without jitter breaks.
 *
 * @param waveMs - attempts within this time form a wave
 */
export const spreadRules = ({ drawn, due, predicted }, waveMs) => {
  const shares = drawn.map(({ longest, wait }) => wait / longest);
  const even = shares.map((_, n) => (n + 0.5) / shares.length);
  const most = rounded(distanceByChance(drawn.length));
  const largest = largestByChance(predicted.map((times) => largestWithin(times, waveMs)));
  const some = predicted.slice(0, 20).flat();
  return [
    atMost('waits: distance from an even spread', rounded(distance(shares, even)), most),
    atMost('attempts: distance from the prediction with full jitter', rounded(distance(due, some)), most),
    atMost(`attempts: the most that were due within ${waveMs} ms`, largestWithin(due, waveMs), largest),
  ];
};

/** Returns the same rule for the waits with a Retry-After. */
export const floorRule = (clients, policy) => {
  const waits = clients.flatMap((client) => client.waits.filter(({ floorMs }) => floorMs > 0));
  const shares = waits.map(({ delayMs, floorMs }) => (delayMs - floorMs) / longestMs(policy, 1));
  const even = shares.map((_, n) => (n + 0.5) / shares.length);
  const found = shares.length === 0 ? NaN : rounded(distance(shares, even));
  const most = rounded(distanceByChance(shares.length));
  return atMost('waits added to Retry-After: distance from an even spread', found, most);
};

/** Returns what the largest wave exceeds by chance once in 50,000 runs: it has a Gumbel distribution, as maxima do. */
const largestByChance = (waves) => {
  const mean = waves.reduce((sum, wave) => sum + wave, 0) / waves.length;
  const deviation = Math.sqrt(waves.reduce((sum, wave) => sum + (wave - mean) ** 2, 0) / waves.length);
  return Math.ceil(mean + 8 * deviation);
};

const rounded = (value) => Math.round(value * 1_000) / 1_000;

/** Returns the longest wait before an attempt: 1, 2, … */
const longestMs = ({ initialDelayMs, maxDelayMs, factor }, attempt) =>
  Math.min(maxDelayMs, initialDelayMs * factor ** (attempt - 1));

/** Returns the most times within any `widthMs`. */
export const largestWithin = (times, widthMs) => {
  const sorted = Float64Array.from(times).sort();
  let from = 0;
  return sorted.reduce((most, time, at) => {
    while (time - sorted[from] > widthMs) from += 1;
    return Math.max(most, at - from + 1);
  }, 0);
};

/** Returns the distance between the distributions of two samples (Kolmogorov and Smirnov): 0 to 1. */
export const distance = (some, others) => {
  const [a, b] = [some, others].map((times) => Float64Array.from(times).sort());
  let [i, j, most] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    const time = Math.min(a[i], b[j]);
    while (a[i] <= time) i += 1;
    while (b[j] <= time) j += 1;
    most = Math.max(most, Math.abs(i / a.length - j / b.length));
  }
  return most;
};

/** Returns the distance between `count` times and their own distribution that chance exceeds once in a million. */
export const distanceByChance = (count) => 2.7 / Math.sqrt(count);
