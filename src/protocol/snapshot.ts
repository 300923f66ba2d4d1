import type { Gap, LifecycleEvent, Opened, RelayedEvent, Stopped } from './event.js';
import { relayReports } from './failures/relay-meanings.js';
import { gapOfMissed, type Missed } from './gap.js';
import { afterEvent, noOutages } from './outage.js';

/** The status of a feed: the events that a new subscriber must receive, in order. */
export type Snapshot = readonly LifecycleEvent[];

/** An event in the log of a relay. A stop of the feed is logged as `disconnected`, because clients stay connected. */
export type LoggedEvent = Exclude<RelayedEvent, Stopped> | LoggedValue;

/** A value of a topic, as JSON. */
export interface LoggedValue {
  readonly type: 'value';
  /** In epoch ms. */
  readonly at: number;
  readonly json: string;
}

// An event replaces the events of a snapshot with the same or a higher rank.
const ranks = { disconnected: 1, reconnecting: 2, 'ticket-requested': 3, 'ticket-issued': 4 } as const;

/** Folds an event into a snapshot. Returns the same list if nothing changes. */
export const nextSnapshot = (snapshot: Snapshot, event: LoggedEvent): Snapshot => {
  switch (event.type) {
    case 'gap':
    case 'value':
    case 'watermark':
      return snapshot;
    case 'opened':
      return [event];
    case 'frame': {
      // A source may emit frames without lifecycle events.
      const { feed, connection, receivedAt: at } = event;
      return openedIn(snapshot) ? snapshot : [{ type: 'opened', at, feed, connection }];
    }
    case 'disconnected':
    case 'reconnecting':
    case 'ticket-requested':
    case 'ticket-issued':
      return [
        ...snapshot.filter((known, index) => beginsOutage(known, index) || rankOf(known) < ranks[event.type]),
        event,
      ];
  }
};

/** Returns the `opened` event of a snapshot, if the feed is open. */
export const openedIn = ([first]: Snapshot): Opened | undefined => (first?.type === 'opened' ? first : undefined);

/** Returns whether the feed has been open, as far as the snapshot shows. */
export const hasBeenOpen = (snapshot: Snapshot): boolean =>
  snapshot.reduce((outages, event) => afterEvent(outages, event, undefined), noOutages).hasOpened;

/** Returns the events for a subscriber that receives the feed since `at`, in epoch ms. */
export const snapshotSince = (snapshot: Snapshot, at: number): readonly LifecycleEvent[] => {
  const opened = openedIn(snapshot);
  // The subscriber has not received the frames before `at`, so the feed opens at that time for it.
  return opened ? [{ ...opened, at }] : snapshot;
};

/** Returns the events for a client that has received events up to `at`, in epoch ms. Earlier times are raised to `at`. */
export const snapshotNotBefore = (snapshot: Snapshot, at: number): readonly LifecycleEvent[] =>
  snapshot.map((event) => notBefore(event, at));

/** Returns the events for a client that has missed frames: the gap and the current status. If the feed is open, the gap follows `opened`. */
export const snapshotAfterGap = (snapshot: Snapshot, missed: Missed): readonly LifecycleEvent[] => {
  const events = snapshotNotBefore(snapshot, missed.to);
  const gap = relayGap(missed);
  return openedIn(snapshot) ? [...events, gap] : [gap, ...events];
};

/** Creates the gap for the frames that a client of a relay has missed. */
export const relayGap = (missed: Missed): Gap => gapOfMissed(missed, relayReports.behind);

/** Returns an event with a time that is not before `at`, in epoch ms. */
export const notBefore = (event: LifecycleEvent, at: number): LifecycleEvent => {
  if (event.type === 'gap') return event.to >= at ? event : { ...event, to: at, durationMs: at - event.from };
  if (event.at >= at) return event;
  // The wait becomes shorter, so that the time of the next attempt does not change.
  if (event.type === 'reconnecting') return { ...event, at, delayMs: Math.max(0, event.at + event.delayMs - at) };
  return { ...event, at };
};

// A snapshot keeps its first `disconnected`: it contains the failure that began the outage.
const beginsOutage = ({ type }: LifecycleEvent, index: number): boolean => type === 'disconnected' && index === 0;

const rankOf = ({ type }: LifecycleEvent): number => (ranks as Partial<Record<typeof type, number>>)[type] ?? Infinity;
