import type { Gap, LifecycleEvent } from './event.js';
import { errorBy } from './meaning.js';
import { relayTold } from './relay-told.js';
import { openedIn, type Present } from './present.js';

/** Tells how it stands, to somebody who has been here since `at`, in epoch ms. */
export const presentSince = (present: Present, at: number): readonly LifecycleEvent[] => {
  const opened = openedIn(present);
  // Who comes later has not seen the frames before: for him the feed is open from then on.
  return opened ? [{ ...opened, at }] : present;
};

/** Says how the feed is, to a client that has received events up to `at`, in epoch ms: none of these is earlier. */
export const presentAgain = (present: Present, at: number): readonly LifecycleEvent[] =>
  present.map((event) => notBefore(event, at));

/** Moves an event that is earlier to a time, in epoch ms. */
export const notBefore = (event: LifecycleEvent, at: number): LifecycleEvent => {
  if (event.type === 'gap') return event.to >= at ? event : { ...event, to: at, durationMs: at - event.from };
  if (event.at >= at) return event;
  // The next attempt begins when it did.
  if (event.type === 'reconnecting') return { ...event, at, delayMs: Math.max(0, event.at + event.delayMs - at) };
  return { ...event, at };
};

/** What somebody has missed: from when to when, and how many frames. */
export interface Missed {
  readonly from: number;
  readonly to: number;
  /** `undefined` when nobody knows. */
  readonly frames: number | undefined;
}

/** Tells of what somebody has missed, and how it stands now. A gap stands right behind the opening, if there is one. */
export const presentBehindGap = (present: Present, missed: Missed): readonly LifecycleEvent[] => {
  const told = presentAgain(present, missed.to);
  const gap = gapOf(missed);
  return openedIn(present) ? [...told, gap] : [gap, ...told];
};

/** Makes the gap for what somebody has missed. It ends before what follows, also if a clock was set back. */
export const gapOf = ({ from: begin, to, frames }: Missed): Gap => {
  const from = Math.min(begin, to);
  const failure = errorBy(relayTold.behind, { stage: 'stream', endedAt: from });
  const gap = { type: 'gap', from, to, durationMs: to - from, failure } as const;
  return frames === undefined ? gap : { ...gap, missed: frames };
};
