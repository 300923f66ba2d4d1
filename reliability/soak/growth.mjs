// Decides whether a resource grows: by the slope of a line through all samples after the warm-up.
import { slopeOf } from '../lib/slope.mjs';

const HOUR_S = 3_600;
/** The part of a run in which code is compiled and caches fill, and its maximum in seconds. */
const WARM_UP = 0.25;
const LONGEST_WARM_UP_S = 120;

/**
 * The sampled resources, with the growth that is allowed in a run of any length and in an hour. A short run can't distinguish a small
 * leak from noise, so the larger of the two limits applies.
 */
export const resources = {
  heap: { what: 'heap', unit: 'MB', perRun: 1, perHour: 5 },
  buffers: { what: 'array buffers', unit: 'MB', perRun: 1, perHour: 5 },
  external: { what: 'external memory', unit: 'MB', perRun: 1, perHour: 5 },
  rss: { what: 'resident memory', unit: 'MB', perRun: 16, perHour: 24 },
  handles: { what: 'active handles', unit: '', perRun: 6, perHour: 6 },
  fds: { what: 'file descriptors', unit: '', perRun: 6, perHour: 6 },
};

/** Returns the samples that count: after the warm-up, and taken while every subscription was open. */
export const validSamples = (samples) => {
  const end = samples.at(-1)?.atS ?? 0;
  const from = Math.min(LONGEST_WARM_UP_S, end * WARM_UP);
  return samples.filter(({ atS, isStable }) => isStable && atS >= from);
};

/**
 * Measures the growth of one resource. It grows if the lower bound of its slope, at 99 % confidence, is above the limit.
 *
 * @param samples - `{ atS, isStable, heap, … }`
 * @param name - one of `resources`
 * @returns slope, bounds and limit for each hour; `undefined` if the resource wasn't sampled
 */
export const growthOf = (samples, name) => {
  const { what, unit, perRun, perHour } = resources[name];
  const valid = validSamples(samples).filter((sample) => sample[name] !== undefined);
  if (valid.length === 0) return undefined;
  const hours = (valid.at(-1).atS - valid[0].atS) / HOUR_S;
  const limit = Math.max(perHour, perRun / hours);
  const { slope, low, high } = slopeOf(valid.map((sample) => [sample.atS / HOUR_S, sample[name]]));
  const verdict = low > limit ? 'grows' : high <= limit ? 'flat' : Number.isFinite(slope) ? 'too noisy' : 'too few';
  return { what, unit, limit, slope, low, high, samples: valid.length, verdict };
};
