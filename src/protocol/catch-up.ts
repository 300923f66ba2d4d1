import type { Gap, LifecycleEvent } from './event.js';
import { relayReports } from './failures/relay-meanings.js';
import { gapOfMissed, type Missed } from './gap.js';
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

/** Tells of what somebody has missed, and how it stands now. A gap stands right behind the opening, if there is one. */
export const presentBehindGap = (present: Present, missed: Missed): readonly LifecycleEvent[] => {
  const told = presentAgain(present, missed.to);
  const gap = relayGap(missed);
  return openedIn(present) ? [...told, gap] : [gap, ...told];
};

/** Creates the gap for the frames that a client of a relay has missed. */
export const relayGap = (missed: Missed): Gap => gapOfMissed(missed, relayReports.behind);
