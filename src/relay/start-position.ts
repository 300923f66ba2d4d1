import { type FeedPosition, feedPositionOf, framesBetween, isAfterPosition } from '../protocol/feed-position.js';
import type { Missed } from '../protocol/gap.js';
import { type EventId, parseEventId } from '../protocol/event-id.js';
import type { EventLog } from './event-log.js';
import type { Position } from './log-entries.js';

/** How a client joins: without a position, with every event since it left, or with a gap (too late, or from another log). */
export type JoinKind = 'new' | 'resumed' | 'behind';

/** Where a client starts in a log. */
export interface Start {
  readonly joined: JoinKind;
  readonly position: Position;
  /** The frames that a client that is `behind` has missed. */
  readonly missed?: Missed;
  /** The client received events up to this time, in epoch ms, from another relay. They are not sent again. */
  readonly seenUntil?: number;
  /** The position of the cluster that the client has reached, with the time of its id. Events up to this position are not sent again. */
  readonly seen?: SeenPosition;
}

/** A position of a cluster that a client has reached at another replica, or at this one. */
export interface SeenPosition extends FeedPosition {
  /** No event before the position is later, in epoch ms. */
  readonly at: number;
}

/**
 * Decides where a client starts. Pure, except for the clock of the log.
 *
 * A client of this log resumes at its position. A client of another log resumes after the time in its id, with a gap. Both receive at
 * most `maxReplayBytes`: a gap replaces older events. In a cluster a client of another replica resumes as a client of this log does.
 */
export const startPosition = (
  log: EventLog,
  { epoch, isInCluster }: { readonly epoch: string; readonly isInCluster: boolean },
  lastEventId: string | undefined,
  now: number,
): Start => {
  const id = parseEventId(lastEventId);
  const shared = id && isInCluster ? feedPositionOf(id) : undefined;
  if (id && shared && canContinue(log, shared) && isNear(log, id.at, now))
    return resumeInCluster(log, { ...shared, at: id.at });
  if (id === undefined || (id.epoch === epoch && id.seq > log.newest.seq))
    return { joined: 'new', position: log.newest };
  return id.epoch === epoch ? resumeHere(log, id, now) : resumeFromElsewhere(log, id, now);
};

const resumeHere = (log: EventLog, id: EventId, now: number): Start => {
  const stored = log.positionAt(id.seq);
  const first = log.replayStart();
  if (stored === undefined || stored.seq < first.seq) {
    const { at, frames } = stored ?? id;
    const missed = { from: at, to: log.timeAt(first), frames: Math.max(0, first.frames - frames) };
    return { joined: 'behind', position: first, missed };
  }
  const start = { joined: 'resumed', position: stored } as const;
  // `RelayClient` wrote an `at` later than the position: it was skipping events up to `at - 1`, because another relay had sent them.
  return id.at > Math.ceil(stored.at) && isNear(log, id.at, now) ? { ...start, seenUntil: id.at - 1 } : start;
};

// If two owners have used a number, a position of one means nothing for the other.
const canContinue = ({ newest }: EventLog, seen: FeedPosition): boolean =>
  newest.shared === undefined || isAfterPosition(newest.shared, seen) !== undefined;

const resumeInCluster = (log: EventLog, seen: SeenPosition): Start => {
  const position = log.positionUntil(seen);
  const first = log.replayStart();
  if (position !== undefined && position.seq >= first.seq) return { joined: 'resumed', position, seen };
  const frames = first.shared && framesBetween(seen, first.shared);
  return { joined: 'behind', position: first, missed: { from: seen.at, to: log.timeAt(first), frames } };
};

const resumeFromElsewhere = (log: EventLog, { at }: EventId, now: number): Start => {
  const seenUntil = isNear(log, at, now) ? at : undefined;
  const position = later(log.positionAfter(at), log.replayStart());
  const to = Math.max(seenUntil ?? -Infinity, log.timeAt(position));
  const start = { joined: 'behind', position, missed: { from: at, to, frames: undefined } } as const;
  return seenUntil === undefined ? start : { ...start, seenUntil };
};

const later = (one: Position, other: Position): Position => (one.seq > other.seq ? one : other);

/** The greatest difference of the clocks of two relays, plus the delay of one of them, in ms. */
const maxAheadMs = 10_000;

/** Returns whether the log reaches a time soon. Otherwise a client with a wrong or forged id would wait for a long time. */
export const isNear = (log: EventLog, at: number, now: number): boolean => at <= log.timeNow(now) + maxAheadMs;

/** Returns whether the log should have reached a time long ago. */
export const isLate = (log: EventLog, at: number, now: number): boolean =>
  log.newest.seq > 0 && at + maxAheadMs < log.timeNow(now);
