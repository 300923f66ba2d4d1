// Is a resource flat? Judged by the slope of a line through all samples after the warm-up, not by a snapshot.
import { slopeOf } from '../lib/slope.mjs';

const HOUR_S = 3_600;
/** The part of a run in which code is compiled and caches are filled, and its most in seconds. */
const WARM_UP = 0.25;
const LONGEST_WARM_UP_S = 120;

/**
 * What is sampled: how much may grow in a run, whatever its length, and in an hour at most. A short run cannot tell a small leak
 * from noise, a long one can.
 */
export const resources = {
  heap: { what: 'heap', unit: 'MB', perRun: 1, perHour: 5 },
  buffers: { what: 'array buffers', unit: 'MB', perRun: 1, perHour: 5 },
  external: { what: 'external memory', unit: 'MB', perRun: 1, perHour: 5 },
  rss: { what: 'resident memory', unit: 'MB', perRun: 16, perHour: 24 },
  handles: { what: 'active handles', unit: '', perRun: 6, perHour: 6 },
  fds: { what: 'file descriptors', unit: '', perRun: 6, perHour: 6 },
};

/** The samples that are judged: after the warm-up, while every subscription was open. */
export const judgedOf = (samples) => {
  const end = samples.at(-1)?.atS ?? 0;
  const from = Math.min(LONGEST_WARM_UP_S, end * WARM_UP);
  return samples.filter(({ atS, isSettled }) => isSettled && atS >= from);
};

/**
 * Judges one resource. It grows when its slope is surely above the limit, the bounds of the slope being those of 99 %.
 *
 * @param samples - `{ atS, isSettled, heap, … }`
 * @param name - one of `resources`
 * @returns the rule as a row of a table: slope, bounds and limit for each hour; `undefined` where there is nothing to sample
 */
export const judge = (samples, name) => {
  const { what, unit, perRun, perHour } = resources[name];
  const judged = judgedOf(samples).filter((sample) => sample[name] !== undefined);
  if (judged.length === 0) return undefined;
  const hours = (judged.at(-1).atS - judged[0].atS) / HOUR_S;
  const limit = Math.max(perHour, perRun / hours);
  const { slope, low, high } = slopeOf(judged.map((sample) => [sample.atS / HOUR_S, sample[name]]));
  const verdict = low > limit ? 'grows' : high <= limit ? 'flat' : Number.isFinite(slope) ? 'too noisy' : 'too few';
  return { what, unit, limit, slope, low, high, samples: judged.length, verdict };
};
