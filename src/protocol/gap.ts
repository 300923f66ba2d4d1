import type { Gap } from './event.js';
import { createFailure, type Meaning } from './failures/meaning.js';
import type { TradeFeedError } from './failures/trade-feed-error.js';

/** Frames that a client or a consumer has missed. */
export interface Missed {
  /** In epoch ms. */
  readonly from: number;
  /** In epoch ms. */
  readonly to: number;
  /** How many frames; `undefined` when that is unknown. */
  readonly frames: number | undefined;
}

/** Creates a gap between two times, in epoch ms. Its length is never negative, even if a clock was set back. */
export const createGap = (begin: number, to: number, failure: TradeFeedError): Gap => {
  const from = Math.min(begin, to);
  return { type: 'gap', from, to, durationMs: to - from, failure };
};

/** Creates the gap for missed frames, with a failure of this meaning. */
export const gapOfMissed = ({ from, to, frames }: Missed, meaning: Meaning): Gap => {
  const failure = createFailure(meaning, { stage: 'stream', endedAt: Math.min(from, to) });
  const gap = createGap(from, to, failure);
  return frames === undefined ? gap : { ...gap, missed: frames };
};
