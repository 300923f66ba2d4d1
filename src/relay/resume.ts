import type { LifecycleEvent } from '../protocol/event.js';
import {
  afterTime,
  type Missed,
  relayGap,
  snapshotAfterGap,
  snapshotNotBefore,
  snapshotOfNew,
} from '../protocol/feed-state.js';
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
import type { Position } from './entries.js';
import type { EventLog } from './event-log.js';

// Where a client continues in a log, as pure functions over the log. Times are in epoch ms.
//
// A client of this log continues at its position. A client of another log continues after the time it has reached; its
// gap begins where it was last complete, because the relay it comes from may have been in an outage. In a cluster, a
// client of another replica continues at its position in the cluster's feed. Each receives at most `maxReplayBytes`: a
// gap replaces older events.

/** How a client joins: without a position, with every event since it left, or with a gap (too late, or another log). */
export type JoinKind = 'new' | 'resumed' | 'behind';

/** What a client may have received that this log doesn't have yet. These events aren't sent again. */
export type Resume =
  | { readonly from: 'here' }
  /** Events up to a time, from another relay. `isReported`: a gap covers the skipped events. */
  | { readonly from: 'elsewhere'; readonly until: number; readonly isReported: boolean }
  /** Events up to a position of the cluster, perhaps from another replica. */
  | { readonly from: 'cluster'; readonly received: ReceivedPosition };

/** The position of a cluster that a client has reached, with the times of its id. */
type ReceivedPosition = FeedPosition & Pick<EventId, 'at' | 'complete'>;

/** Tracks where a client is in a log, and which losses still need a gap. */
export interface Progress {
  readonly position: Position;
  readonly resume: Resume;
  readonly sent: number;
  /** Frames skipped, which a gap has reported. */
  readonly missed: number;
  /**
   * Where the next gap starts; `undefined` if every loss is reported. It ends when the next connection is complete, and
   * until then the client receives the events one by one.
   */
  readonly pendingGapFrom: number | undefined;
}

/** The events to send, and the progress after them. */
export interface Step {
  readonly progress: Progress;
  readonly events: readonly LifecycleEvent[];
}

/** A client's first step: the state of the feed, and a gap if the client has missed something. */
export interface Joined extends Step {
  readonly joined: JoinKind;
  /** The time the client has reached; it receives nothing earlier. `-Infinity` for a new client. */
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
  // A restarted relay may still be reading its log from long ago, so the clock counts as well.
  if (shared && canContinue(log, shared) && (reached === id.at || id.at <= log.clock() + maxAheadMs))
    return joinInCluster(log, { ...shared, at: id.at, complete: id.complete });
  return id.epoch === epoch ? joinHere(log, id, reached) : joinFromElsewhere(log, id, reached);
};

/** @param sinceMs - how much of the past the client wants */
const joinNew = (log: EventLog, sinceMs: number): Joined => {
  const [after, first] = sinceMs > 0 ? [log.positionAfter(log.timeNow - sinceMs), log.replayStart()] : [];
  const position = after === undefined || first === undefined ? log.newest : after.seq > first.seq ? after : first;
  const at = position === log.newest ? Math.max(position.at, log.timeNow) : position.at;
  const events = snapshotOfNew(position.state, at);
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

// If two owners have used the same number, the position of one says nothing about the other.
const canContinue = ({ newest }: EventLog, received: FeedPosition): boolean =>
  newest.shared === undefined || isAfterPosition(newest.shared, received) !== undefined;

const joinInCluster = (log: EventLog, received: ReceivedPosition): Joined => {
  const position = log.positionUntil(received);
  const first = log.replayStart();
  if (position !== undefined && position.seq >= first.seq)
    return resumed(position, { from: 'cluster', received }, received.at);
  const to = Math.max(received.at, log.timeAt(first));
  return behind(first, here, received.at, { from: received.complete, to, frames: framesTo(first, received) });
};

// The client may have some events of the ms `at`, so they aren't sent again. It may lack others, so the gap covers that
// ms.
const joinFromElsewhere = (log: EventLog, { at, complete }: EventId, near: number): Joined => {
  const [after, first] = [log.positionAfter(at), log.replayStart()];
  const position = after.seq > first.seq ? after : first;
  const reached = near + 1;
  const to = Math.max(reached, log.timeAt(position));
  const resume: Resume = near === -Infinity ? here : { from: 'elsewhere', until: near, isReported: false };
  return behind(position, resume, reached, { from: complete, to, frames: undefined });
};

const startAt = (position: Position, resume: Resume): Progress => {
  return { position, resume, sent: 0, missed: 0, pendingGapFrom: undefined };
};

const resumed = (position: Position, resume: Resume, reached: number): Joined => {
  const events = snapshotNotBefore(position.state, Math.max(position.at, reached));
  return { joined: 'resumed', reached, progress: startAt(position, resume), events };
};

const behind = (position: Position, resume: Resume, reached: number, missed: Missed): Joined => {
  const progress = { ...startAt(position, resume), missed: missed.frames ?? 0 };
  return { joined: 'behind', reached, ...withGap(progress, missed) };
};

// No spread: this runs per client and batch.
export const advance = ({ position, resume, sent, missed, pendingGapFrom }: Progress, end: Position): Progress => {
  return { position: end, resume, sent: sent + end.frames - position.frames, missed, pendingGapFrom };
};

/** Returns whether the log has removed events that the client lacks: it may have them from another replica. */
export const isBehind = ({ position, resume }: Progress, log: EventLog): boolean =>
  position.seq < log.oldest.seq && (resume.from !== 'cluster' || log.positionUntil(resume.received) === undefined);

/** Skips events that the log has removed, or that the client has from another relay. The step may have no events. */
export const skip = (progress: Progress, log: EventLog): Step => {
  const { resume } = progress;
  if (isBehind(progress, log)) return skipToOldest(progress, log);
  if (resume.from === 'cluster') return skipToReceived(progress, resume.received, log);
  return resume.from === 'elsewhere' ? skipUntil(progress, resume, log) : { progress, events: [] };
};

const skipToOldest = (progress: Progress, log: EventLog): Step => {
  const { oldest } = log;
  const { position, resume } = progress;
  const lost = oldest.frames - position.frames;
  const received = resume.from === 'cluster' ? resume.received : undefined;
  const frames = received === undefined ? lost : framesTo(oldest, received);
  const until = resume.from === 'elsewhere' ? resume.until : -Infinity;
  const missed = { from: received?.complete ?? position.complete, to: Math.max(log.timeAt(oldest), until + 1), frames };
  const next: Progress = {
    ...progress,
    position: oldest,
    missed: progress.missed + (frames ?? lost),
    // The gap ends at `until` or later, so it also reports what `skipUntil` skips.
    resume: resume.from === 'elsewhere' ? { ...resume, isReported: true } : here,
  };
  return isSameState(position, oldest) ? { progress: next, events: [relayGap(missed)] } : withGap(next, missed);
};

// Needed if this replica lags the client's previous one, or has missed events that the client has.
const skipToReceived = (progress: Progress, received: ReceivedPosition, log: EventLog): Step => {
  const end = log.positionUntil(received) ?? log.oldest;
  const next = log.positionAt(end.seq + 1);
  const isReached = end.shared?.run === received.run && end.shared.sequence === received.sequence;
  if (!isReached && next !== undefined && (end.shared === undefined || log.isGap(next))) {
    // This gap, or the beginning of the log, may cover events that the client has, so the client's gap begins where it
    // was.
    const frames = framesTo(next, received);
    const after = { ...progress, position: next, resume: here, missed: progress.missed + (frames ?? 0) };
    return withGap(after, { from: received.complete, to: Math.max(received.at, next.at), frames });
  }
  const events = isSameState(end, progress.position) ? [] : snapshotNotBefore(end.state, received.at);
  const atEnd = { ...progress, position: end };
  if (isReached || next !== undefined) return { progress: { ...atEnd, resume: here }, events };
  // A client whose position is forged, or was lost with the store, would never receive anything.
  if (isLate(log, received.at))
    return withGap({ ...atEnd, resume: here }, { from: received.complete, to: log.timeNow, frames: undefined });
  return { progress: atEnd, events };
};

// Needed if this relay's source lags that of the previous relay, or uses another clock.
const skipUntil = (progress: Progress, resume: Extract<Resume, { from: 'elsewhere' }>, log: EventLog): Step => {
  const { position, pendingGapFrom } = progress;
  const { until, isReported } = resume;
  // Before its first event the log has the time of its creation, and that event may be older.
  if ((position.seq > 0 && position.at > until) || !isNear(log, until))
    return { progress: { ...progress, resume: here }, events: [] };
  const end = log.positionAfter(until);
  if (end.seq <= position.seq) return { progress, events: [] };
  const next = { ...progress, position: end };
  const to = until + 1;
  if (pendingGapFrom !== undefined) return withGap(next, { from: pendingGapFrom, to, frames: undefined });
  const state = isSameState(end, position) ? [] : snapshotNotBefore(end.state, to);
  if (isReported || end.frames === position.frames) return { progress: next, events: state };
  const missed = { from: log.earliestAfter(position.seq), to, frames: undefined };
  const reported = { ...next, resume: { ...resume, isReported: true } };
  return state.length === 0 ? { progress: reported, events: [relayGap(missed)] } : withGap(reported, missed);
};

const isSameState = (one: Position, other: Position): boolean => one.state.events === other.state.events;

/** Counts the frames between a position of the cluster and one of this log, if possible. */
const framesTo = ({ shared }: Position, received: ReceivedPosition): number | undefined =>
  shared && framesBetween(received, shared);

// A gap has no end until the feed is complete for the first time, unless the client knows this connection. After an
// outage, the gap of the feed follows.
const withGap = (progress: Progress, missed: Missed): Step => {
  const { position, pendingGapFrom } = progress;
  const { state } = position;
  const from = pendingGapFrom ?? missed.from;
  const { outage, completeFrom, settling } = afterTime(state, missed.to);
  const isKnown = state.hasOpened && pendingGapFrom === undefined && missed.frames !== undefined;
  // With a fixed `deliveryDelayMs`, the first part of that gap may be over.
  const isFollowed = outage !== undefined && settling?.isFixed !== true;
  const hasEnd = isKnown || isFollowed || completeFrom !== undefined;
  const gap = relayGap({ ...missed, from });
  return hasEnd
    ? { progress: { ...progress, pendingGapFrom: undefined }, events: snapshotAfterGap(state, gap) }
    : { progress: { ...progress, pendingGapFrom: from }, events: snapshotNotBefore(state, missed.to) };
};

/**
 * Returns the id of a progress that no position of this log describes; `undefined` if its position does.
 *
 * @param at - the time the client has reached
 */
export const idWithoutPosition = ({ resume, pendingGapFrom, sent }: Progress, at: number): string | undefined => {
  const until = resume.from === 'elsewhere' ? resume.until : undefined;
  // The client lacks the gap, or has another relay's times, which this log hasn't reached.
  const complete = pendingGapFrom ?? until;
  // Until the first frame, it lacks those of the last ms, which another relay may still send.
  if (complete !== undefined)
    return formatEventId(noEpoch, { seq: 0, frames: 0, at: sent > 0 ? at : at - 1, complete });
  if (resume.from !== 'cluster') return undefined;
  const { run, sequence, frames, complete: completeUntil } = resume.received;
  return formatEventId(run, { seq: sequence, frames, at, complete: completeUntil });
};

/** How much the clocks of two relays may differ, plus the delay of one of them, in ms. */
const maxAheadMs = 10_000;

// Otherwise a wrong or forged id would make the client wait for a long time.
const isNear = (log: EventLog, at: number): boolean => at <= log.timeSoon + maxAheadMs;

/** Returns whether the log should have reached a time long ago. */
const isLate = (log: EventLog, at: number): boolean => log.newest.seq > 0 && at + maxAheadMs < log.timeNow;
