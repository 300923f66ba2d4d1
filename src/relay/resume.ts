import type { LifecycleEvent } from '../protocol/event.js';
import { type Missed, relayGap, snapshotAfterGap, snapshotNotBefore, snapshotSince } from '../protocol/feed-state.js';
import {
  type EventId,
  type FeedPosition,
  feedPositionOf,
  formatEventId,
  framesBetween,
  isAfterPosition,
  noEpoch,
  parseEventId,
} from '../protocol/position.js';
import type { EventLog, Position } from './event-log.js';

// Where a client continues in a log, as pure functions over the log. Times are in epoch ms.
//
// A client of this log continues at its position. A client of another log continues after the time that it has reached;
// its gap begins at the time up to which it is complete, because the relay that it comes from may have been in an
// outage. In a cluster a client of another replica continues at its position in the feed of the cluster. Each receives
// at most `maxReplayBytes`: a gap replaces older events.

/** How a client joins: without a position, with every event since it left, or with a gap (too late, or another log). */
export type JoinKind = 'new' | 'resumed' | 'behind';

/** What a client has received that this log may not have yet. These events are not sent again. */
export type Resume =
  | { readonly from: 'here' }
  /** Events up to a time, from another relay. `isReported`: a gap covers the events that are skipped. */
  | { readonly from: 'elsewhere'; readonly until: number; readonly isReported: boolean }
  /** Events up to a position of the cluster, perhaps from another replica. */
  | { readonly from: 'cluster'; readonly seen: SeenPosition };

/** A position of a cluster that a client has reached, with the times of its id. */
type SeenPosition = FeedPosition & Pick<EventId, 'at' | 'complete'>;

/** Where a client is in a log, and which losses still need a gap. */
export interface Progress {
  readonly position: Position;
  readonly resume: Resume;
  readonly sent: number;
  /** The number of frames that were not sent, and that a gap has reported. */
  readonly missed: number;
  /** Since when frames may be missing that no gap has reported. The gap follows the next `opened`, and ends there. */
  readonly missingSince: number | undefined;
}

/** The events to send, and the progress after them. */
export interface Step {
  readonly progress: Progress;
  readonly events: readonly LifecycleEvent[];
}

/** The first step of a client: the state of the feed, and a gap if the client has missed something. */
export interface Joined extends Step {
  readonly joined: JoinKind;
  /** The time that the client has reached: no earlier event is sent. `-Infinity` for a new client. */
  readonly reached: number;
}

const here: Resume = { from: 'here' };

/** Decides where a client with a `Last-Event-ID` starts in a log. */
export const join = (
  log: EventLog,
  { epoch, isInCluster }: { readonly epoch: string; readonly isInCluster: boolean },
  lastEventId: string | undefined,
  sinceMs = 0,
): Joined => {
  const id = parseEventId(lastEventId);
  if (id === undefined || (id.epoch === epoch && id.seq > log.newest.seq)) return joinNew(log, sinceMs);
  const reached = isNear(log, id.at) ? id.at : -Infinity;
  const shared = isInCluster && id.epoch !== epoch ? feedPositionOf(id) : undefined;
  // After a restart the log may still be read from a time long ago, so the clock counts as well.
  if (shared && canContinue(log, shared) && (reached === id.at || id.at <= log.clock() + maxAheadMs))
    return joinInCluster(log, { ...shared, at: id.at, complete: id.complete });
  return id.epoch === epoch ? joinHere(log, id, reached) : joinFromElsewhere(log, id, reached);
};

/** @param sinceMs - how much of the past the client wants */
const joinNew = (log: EventLog, sinceMs: number): Joined => {
  const [after, first] = sinceMs > 0 ? [log.positionAfter(log.timeNow - sinceMs), log.replayStart()] : [];
  const position = after === undefined || first === undefined ? log.newest : after.seq > first.seq ? after : first;
  const at = position === log.newest ? Math.max(position.at, log.timeNow) : position.at;
  const events = snapshotSince(position.state.events, at);
  return { joined: 'new', reached: -Infinity, progress: startAt(position, here), events };
};

const joinHere = (log: EventLog, id: EventId, reached: number): Joined => {
  const stored = log.positionAt(id.seq);
  const first = log.replayStart();
  if (stored !== undefined && stored.seq >= first.seq) return resumed(stored, here, reached);
  const { complete, frames } = stored ?? id;
  const to = Math.max(reached, log.timeAt(first));
  return behind(first, here, reached, { from: complete, to, frames: Math.max(0, first.frames - frames) });
};

// If two owners have used a number, a position of one means nothing for the other.
const canContinue = ({ newest }: EventLog, seen: FeedPosition): boolean =>
  newest.shared === undefined || isAfterPosition(newest.shared, seen) !== undefined;

const joinInCluster = (log: EventLog, seen: SeenPosition): Joined => {
  const position = log.positionUntil(seen);
  const first = log.replayStart();
  if (position !== undefined && position.seq >= first.seq) return resumed(position, { from: 'cluster', seen }, seen.at);
  const to = Math.max(seen.at, log.timeAt(first));
  return behind(first, here, seen.at, { from: seen.complete, to, frames: framesTo(first, seen) });
};

// The client may have the events of the ms `at`, so they are not sent again. The gap covers that ms, because it may
// also lack some.
const joinFromElsewhere = (log: EventLog, { at, complete }: EventId, near: number): Joined => {
  const [after, first] = [log.positionAfter(at), log.replayStart()];
  const position = after.seq > first.seq ? after : first;
  const reached = near + 1;
  const to = Math.max(reached, log.timeAt(position));
  const resume: Resume = near === -Infinity ? here : { from: 'elsewhere', until: near, isReported: false };
  return behind(position, resume, reached, { from: complete, to, frames: undefined });
};

const startAt = (position: Position, resume: Resume): Progress => {
  return { position, resume, sent: 0, missed: 0, missingSince: undefined };
};

const resumed = (position: Position, resume: Resume, reached: number): Joined => {
  const events = snapshotNotBefore(position.state.events, Math.max(position.at, reached));
  return { joined: 'resumed', reached, progress: startAt(position, resume), events };
};

const behind = (position: Position, resume: Resume, reached: number, missed: Missed): Joined => {
  const progress = { ...startAt(position, resume), missed: missed.frames ?? 0 };
  return { joined: 'behind', reached, ...withGap(progress, missed) };
};

// Without a spread: this runs for each client and batch.
export const advance = ({ position, resume, sent, missed, missingSince }: Progress, end: Position): Progress => {
  return { position: end, resume, sent: sent + end.frames - position.frames, missed, missingSince };
};

export const isBehind = ({ position }: Progress, log: EventLog): boolean => position.seq < log.oldest.seq;

/** Skips events that the log has removed, or that the client has from another relay. The step may have no events. */
export const skip = (progress: Progress, log: EventLog): Step => {
  const { resume } = progress;
  if (isBehind(progress, log)) return skipToOldest(progress, log);
  if (resume.from === 'cluster') return skipToSeen(progress, resume.seen, log);
  return resume.from === 'elsewhere' ? skipUntil(progress, resume, log) : { progress, events: [] };
};

const skipToOldest = (progress: Progress, log: EventLog): Step => {
  const { oldest } = log;
  const { position, resume } = progress;
  const lost = oldest.frames - position.frames;
  const seen = resume.from === 'cluster' ? resume.seen : undefined;
  const frames = seen === undefined ? lost : framesTo(oldest, seen);
  const until = resume.from === 'elsewhere' ? resume.until : -Infinity;
  const missed = { from: seen?.complete ?? position.complete, to: Math.max(log.timeAt(oldest), until + 1), frames };
  const next: Progress = {
    ...progress,
    position: oldest,
    missed: progress.missed + (frames ?? lost),
    // The gap ends at `until` or later, so it also reports the events that `skipUntil` skips.
    resume: resume.from === 'elsewhere' ? { ...resume, isReported: true } : here,
  };
  return isSameState(position, oldest) ? { progress: next, events: [relayGap(missed)] } : withGap(next, missed);
};

// Needed if this replica is behind the one that the client comes from, or has missed events that the client has.
const skipToSeen = (progress: Progress, seen: SeenPosition, log: EventLog): Step => {
  const end = log.positionUntil(seen) ?? log.oldest;
  const next = log.positionAt(end.seq + 1);
  const isReached = end.shared?.run === seen.run && end.shared.sequence === seen.sequence;
  if (!isReached && next !== undefined && (end.shared === undefined || log.isGap(next))) {
    // This gap, or the beginning of the log, covers events that the client may have: its gap begins where the client
    // was.
    const frames = framesTo(next, seen);
    const after = { ...progress, position: next, resume: here, missed: progress.missed + (frames ?? 0) };
    return withGap(after, { from: seen.complete, to: Math.max(seen.at, next.at), frames });
  }
  const events = isSameState(end, progress.position) ? [] : snapshotNotBefore(end.state.events, seen.at);
  const atEnd = { ...progress, position: end };
  if (isReached || next !== undefined) return { progress: { ...atEnd, resume: here }, events };
  // A client with a forged position, or with one that was lost with the store, would wait for ever.
  if (isLate(log, seen.at))
    return withGap({ ...atEnd, resume: here }, { from: seen.complete, to: log.timeNow, frames: undefined });
  return { progress: atEnd, events };
};

// Needed if the source of this relay is later than the source of the previous relay, or has another clock.
const skipUntil = (progress: Progress, resume: Extract<Resume, { from: 'elsewhere' }>, log: EventLog): Step => {
  const { position, missingSince } = progress;
  const { until, isReported } = resume;
  // Before the first event the log has the time of its creation, and the first event may be older.
  if ((position.seq > 0 && position.at > until) || !isNear(log, until))
    return { progress: { ...progress, resume: here }, events: [] };
  const end = log.positionAfter(until);
  if (end.seq <= position.seq) return { progress, events: [] };
  const next = { ...progress, position: end };
  const to = until + 1;
  if (missingSince !== undefined) return withGap(next, { from: missingSince, to, frames: undefined });
  const state = isSameState(end, position) ? [] : snapshotNotBefore(end.state.events, to);
  if (isReported || end.frames === position.frames) return { progress: next, events: state };
  const missed = { from: log.earliestAfter(position.seq), to, frames: undefined };
  const events = state.length === 0 ? [relayGap(missed)] : snapshotAfterGap(end.state.events, missed);
  return { progress: { ...next, resume: { ...resume, isReported: true } }, events };
};

const isSameState = (one: Position, other: Position): boolean => one.state.events === other.state.events;

/** The number of frames between a position of the cluster and a position of this log, if they can be counted. */
const framesTo = ({ shared }: Position, seen: SeenPosition): number | undefined =>
  shared && framesBetween(seen, shared);

// The end of a gap is unknown until the feed has been open.
const withGap = (progress: Progress, missed: Missed): Step => {
  const { events, hasOpened } = progress.position.state;
  const from = progress.missingSince ?? missed.from;
  return hasOpened
    ? { progress: { ...progress, missingSince: undefined }, events: snapshotAfterGap(events, { ...missed, from }) }
    : { progress: { ...progress, missingSince: from }, events: snapshotNotBefore(events, missed.to) };
};

/**
 * Returns the id of a progress that no position of this log describes; `undefined` if its position does.
 *
 * @param at - the time that the client has reached
 */
export const idWithoutPosition = ({ resume, missingSince }: Progress, at: number): string | undefined => {
  const until = resume.from === 'elsewhere' ? resume.until : undefined;
  // The client lacks the gap, or has the times of another relay, which this log has not reached.
  const complete = missingSince ?? until;
  // It has no frame of the last ms, which another relay may still send.
  if (complete !== undefined) return formatEventId(noEpoch, { seq: 0, frames: 0, at: at - 1, complete });
  if (resume.from !== 'cluster') return undefined;
  const { run, sequence, frames, complete: seenUntil } = resume.seen;
  return formatEventId(run, { seq: sequence, frames, at, complete: seenUntil });
};

/** The greatest difference of the clocks of two relays, plus the delay of one of them, in ms. */
const maxAheadMs = 10_000;

// Otherwise a client with a wrong or forged id would wait for a long time.
const isNear = (log: EventLog, at: number): boolean => at <= log.timeSoon + maxAheadMs;

/** Returns whether the log should have reached a time long ago. */
const isLate = (log: EventLog, at: number): boolean => log.newest.seq > 0 && at + maxAheadMs < log.timeNow;
