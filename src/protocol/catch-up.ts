import type { RelayedEvent, Gap, LifecycleEvent } from './event.js';
import { errorBy } from './meaning.js';
import { relayTold } from './relay-told.js';
import { openedIn, type Present } from './present.js';

/** Tells how it stands, to somebody who has been here since `at`, in epoch ms. */
export const presentSince = (present: Present, at: number): readonly LifecycleEvent[] => {
  const opened = openedIn(present);
  // Who comes later has not seen the frames before: for him the feed is open from then on.
  return opened ? [{ ...opened, at }] : present;
};

/** What somebody has missed: from when to when, and how many frames. */
export interface Missed {
  readonly from: number;
  readonly to: number;
  /** `undefined` when nobody knows. */
  readonly frames: number | undefined;
}

/** Tells of what somebody has missed, and how it stands now. A gap stands right behind the opening, if there is one. */
export const presentBehindGap = (present: Present, missed: Missed): readonly RelayedEvent[] => {
  const told = presentSince(present, missed.to);
  const gap = gapOf(missed);
  return openedIn(present) ? [...told, gap] : [gap, ...told];
};

/** Makes the gap for what somebody has missed. */
export const gapOf = ({ from, to, frames }: Missed): Gap => {
  const failure = errorBy(relayTold.behind, { stage: 'stream', endedAt: from });
  const gap = { type: 'gap', from, to: Math.max(from, to), durationMs: Math.max(0, to - from), failure } as const;
  return frames === undefined ? gap : { ...gap, missed: frames };
};
