import type { LifecycleEvent } from '../protocol/event.js';
import {
  afterTime,
  type Missed,
  relayGap,
  snapshotAfterGap,
  snapshotNotBefore,
  snapshotOfNew,
} from '../protocol/feed-state.js';
import { formatPlace, missedBetween, noLine, parsePlace, type Place, startOf } from '../protocol/place.js';
import type { Checkpoint } from './chunk.js';
import type { EventLog } from './event-log.js';

// Where a client continues in a log, as pure functions over the log. Times are in epoch ms.
//
// A client of this log continues at its position. If the source has a line (a cluster or a log), a client of any relay of
// it continues at its place in that line. All others continue after the time they have reached; their gap begins where
// they were last complete, because the relay they come from may have been in an outage. Each receives at most
// `maxReplayBytes`: a gap replaces older events.

/** How a client joins: without a position, with every event since it left, or with a gap (too late, or another log). */
export type JoinKind = 'new' | 'resumed' | 'behind';

/** What a client may have received that this log doesn't have yet. These events aren't sent again. */
export type Resume =
  | { readonly from: 'here' }
  /** Events up to a time, from another relay. `isReported`: a gap covers the skipped events. */
  | { readonly from: 'elsewhere'; readonly until: number; readonly isReported: boolean }
  /**
   * Events up to a place in the line of the source, perhaps from another relay. `store`: what follows isn't in this log,
   * and is read from the store of the line.
   */
  | { readonly from: 'source' | 'store'; readonly received: Place };

/** Tracks where a client is in a log, and which losses still need a gap. */
export interface Progress {
  readonly position: Checkpoint;
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

/**
 * Decides where a client with a `Last-Event-ID` starts in a log.
 *
 * @param run - `isShared`: whether the source may have a line. `store`: that of the line
 */
export const join = (
  { log, isShared, store }: { readonly log: EventLog; readonly isShared: boolean; readonly store: unknown },
  lastEventId: string | undefined,
  sinceMs = 0,
): Joined => {
  const id = parsePlace(lastEventId);
  const isHere = id?.line === log.line;
  if (id === undefined || (isHere && id.offset > log.newest.offset)) return joinNew(log, sinceMs);
  if (isHere) return joinHere(log, id);
  // A restarted relay may still be reading its log from long ago, so the clock counts as well.
  const isSoon = isNear(log, id.at) || id.at <= log.clock() + maxAheadMs;
  return isShared && isSoon && isOfSource(log, id)
    ? joinInSource(log, id, store !== undefined)
    : joinFromElsewhere(log, id);
};

/** @param sinceMs - how much of the past the client wants */
const joinNew = (log: EventLog, sinceMs: number): Joined => {
  const position = sinceMs > 0 ? startAfter(log, log.timeNow - sinceMs) : log.newest;
  const at = position === log.newest ? Math.max(position.at, log.timeNow) : position.at;
  const events = snapshotOfNew(position.state, at);
  return { joined: 'new', reached: -Infinity, progress: startAt(position, here), events };
};

/** Returns the position after a time, or the oldest one that a client may join at. */
const startAfter = (log: EventLog, time: number): Checkpoint => {
  const [after, first] = [log.positionAfter(time), log.replayStart()];
  return after.offset > first.offset ? after : first;
};

const joinHere = (log: EventLog, id: Place): Joined => {
  const reached = nearTime(log, id);
  const stored = log.positionAt(id.offset);
  const first = log.replayStart();
  if (stored !== undefined && stored.offset >= first.offset) return resumed(stored, here, reached);
  const { complete, frames } = stored ?? id;
  return behind(log, startAt(first, here), reached, { from: complete, frames: Math.max(0, first.frames - frames) });
};

// An empty log doesn't know the line of its source yet. Its first event decides.
const isOfSource = ({ newest: { shared, offset } }: EventLog, { line }: Place): boolean =>
  shared === undefined ? offset === 0 && /^[^_]/.test(line) : shared.line === line;

/** @param isStored - whether what the log lacks may be read from a store */
const joinInSource = (log: EventLog, received: Place, isStored: boolean): Joined => {
  if (isStored && !hasAfter(log, received) && !isBeyond(log))
    return { joined: 'resumed', reached: received.at, progress: inStore(log, received), events: [] };
  const position = log.positionUntil(received);
  const first = log.replayStart();
  if (position !== undefined && position.offset >= first.offset)
    return resumed(position, { from: 'source', received }, received.at);
  const lost = { from: received.complete, frames: missedTo(first, received, log) };
  return behind(log, startAt(first, here), received.at, lost);
};

/** A client that continues in the store. It has reached no position of the log. */
const inStore = (log: EventLog, received: Place): Progress =>
  startAt({ ...log.newest, at: received.at }, { from: 'store', received });

/**
 * Moves a client on in the store, or from there to this log.
 *
 * @param isStored - whether it goes on in the store if the log lacks what follows
 */
export const afterStored = (before: Progress, log: EventLog, received: Place, isStored: boolean): Step =>
  rejoined(before, joinInSource(log, received, isStored));

/** A client that joins once more keeps its counts. */
const rejoined = ({ sent, missed }: Progress, { progress, events }: Joined): Step => {
  return { progress: { ...progress, sent, missed: missed + progress.missed }, events };
};

/** Returns whether the log has each event after a place in the line of the source that the source has emitted. */
const hasAfter = (log: EventLog, place: Place): boolean => log.positionUntil(place)?.shared !== undefined;

/** Returns whether the log has so much that a client may receive none that are older. */
const isBeyond = (log: EventLog): boolean => log.replayStart().offset > log.oldest.offset;

/** Returns the place after which the store may have what the log lacks; `undefined` if the log lacks nothing. */
export const lackedBy = (progress: Progress, log: EventLog): Place | undefined => {
  const { resume, position, pendingGapFrom } = progress;
  // A client that was too slow.
  const isLate = resume.from === 'here' && pendingGapFrom === undefined && isBehind(progress, log);
  const after = isLate ? position.shared : lackedOfSource(resume, log);
  return after !== undefined && !isBeyond(log) ? after : undefined;
};

const lackedOfSource = (resume: Resume, log: EventLog): Place | undefined => {
  if (resume.from !== 'source' || log.newest.offset === 0 || !isOfSource(log, resume.received)) return undefined;
  return hasAfter(log, resume.received) ? undefined : resume.received;
};

// The client may have some events of the ms `at`, so they aren't sent again. It may lack others, so the gap covers that
// ms.
const joinFromElsewhere = (log: EventLog, id: Place): Joined => {
  const near = nearTime(log, id);
  const reached = near + 1;
  const resume: Resume = near === -Infinity ? here : { from: 'elsewhere', until: near, isReported: false };
  return behind(log, startAt(startAfter(log, id.at), resume), reached, { from: id.complete, frames: undefined });
};

const startAt = (position: Checkpoint, resume: Resume): Progress => {
  return { position, resume, sent: 0, missed: 0, pendingGapFrom: undefined };
};

const resumed = (position: Checkpoint, resume: Resume, reached: number): Joined => {
  const events = snapshotNotBefore(position.state, Math.max(position.at, reached));
  return { joined: 'resumed', reached, progress: startAt(position, resume), events };
};

const behind = (log: EventLog, start: Progress, reached: number, lost: Omit<Missed, 'to'>): Joined => {
  const to = Math.max(reached, log.timeAt(start.position));
  return { joined: 'behind', reached, ...withGap({ ...start, missed: lost.frames ?? 0 }, { ...lost, to }) };
};

// No spread: this runs per client and batch.
export const advance = ({ position, resume, sent, missed, pendingGapFrom }: Progress, end: Checkpoint): Progress => {
  return { position: end, resume, sent: sent + end.frames - position.frames, missed, pendingGapFrom };
};

/** Returns whether the log has removed events that the client lacks: it may have them from another relay. */
export const isBehind = ({ position, resume }: Progress, log: EventLog): boolean =>
  !log.has(position) && (resume.from !== 'source' || log.positionUntil(resume.received) === undefined);

/** Skips events that the log has removed, or that the client has from another relay. The step may have no events. */
export const skip = (progress: Progress, log: EventLog): Step => {
  const { resume } = progress;
  if (resume.from === 'source' && !isOfSource(log, resume.received)) {
    const next = rejoined(progress, joinFromElsewhere(log, resume.received));
    return next.events.length > 0 ? next : skip(next.progress, log);
  }
  if (isBehind(progress, log)) return skipToOldest(progress, log);
  if (resume.from === 'source') return skipToReceived(progress, resume.received, log);
  return resume.from === 'elsewhere' ? skipUntil(progress, resume, log) : { progress, events: [] };
};

const skipToOldest = (progress: Progress, log: EventLog): Step => {
  const { oldest } = log;
  const { position, resume } = progress;
  const lost = oldest.frames - position.frames;
  const received = resume.from === 'source' ? resume.received : undefined;
  const frames = received === undefined ? lost : missedTo(oldest, received, log);
  const until = resume.from === 'elsewhere' ? resume.until : -Infinity;
  const missed = { from: received?.complete ?? position.complete, to: Math.max(log.timeAt(oldest), until + 1), frames };
  const next: Progress = {
    ...progress,
    position: oldest,
    missed: progress.missed + (frames ?? lost),
    // The gap ends at `until` or later, so it also reports what `skipUntil` skips.
    resume: resume.from === 'elsewhere' ? { ...resume, isReported: true } : here,
  };
  return withGapAfter(position, next, missed);
};

// Needed if this relay lags the client's previous one, or has missed events that the client has.
const skipToReceived = (progress: Progress, received: Place, log: EventLog): Step => {
  const end = log.positionUntil(received) ?? log.oldest;
  const next = log.positionAt(end.offset + 1);
  const isReached = end.shared?.gen === received.gen && end.shared.offset === received.offset;
  if (!isReached && next !== undefined && (end.shared === undefined || log.isGap(next))) {
    // This gap, or the beginning of the log, may cover events that the client has, so the client's gap begins where it
    // was.
    const frames = missedTo(next, received, log);
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
  if ((position.offset > 0 && position.at > until) || !isNear(log, until))
    return { progress: { ...progress, resume: here }, events: [] };
  const end = log.positionAfter(until);
  if (end.offset <= position.offset) return { progress, events: [] };
  const next = { ...progress, position: end };
  const to = until + 1;
  if (pendingGapFrom !== undefined) return withGap(next, { from: pendingGapFrom, to, frames: undefined });
  const state = isSameState(end, position) ? [] : snapshotNotBefore(end.state, to);
  if (isReported || end.frames === position.frames) return { progress: next, events: state };
  const missed = { from: log.earliestAfter(position.offset), to, frames: undefined };
  const reported = { ...next, resume: { ...resume, isReported: true } };
  return withGapAfter(position, reported, missed);
};

const isSameState = (one: Checkpoint, other: Checkpoint): boolean => one.state.events === other.state.events;

/** Counts the frames between a client's place and a checkpoint; `undefined` if a hole may be between them. */
const missedTo = ({ shared }: Checkpoint, received: Place, log: EventLog): number | undefined => {
  // Each owner of a cluster counts from 0.
  if (shared?.gen !== received.gen) return undefined;
  // An id has no holes: they're at least as many as before the last place that the log has up to there.
  const holes = log.positionUntil(received)?.shared?.holes ?? 0;
  return missedBetween({ ...received, holes }, shared);
};

/** Adds a gap, and the status unless the client has it already. */
const withGapAfter = (known: Checkpoint, progress: Progress, missed: Missed): Step =>
  isSameState(known, progress.position) ? { progress, events: [relayGap(missed)] } : withGap(progress, missed);

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

/** Returns the id of a progress. */
export const idOf = ({ resume, pendingGapFrom, sent, position }: Progress, reached: number): string => {
  const at = Math.max(reached, position.at);
  const until = resume.from === 'elsewhere' ? resume.until : undefined;
  // The client lacks the gap, or has another relay's times, which this log hasn't reached.
  const complete = pendingGapFrom ?? until;
  // Until the first frame, it lacks those of the last ms, which another relay may still send.
  if (complete !== undefined) return formatPlace({ ...startOf(noLine), at: sent > 0 ? at : at - 1, complete });
  return resume.from === 'source' || resume.from === 'store'
    ? formatPlace({ ...resume.received, at })
    : idAt(position, at);
};

/** Returns the id of a position, for a client that has reached the time `at` (epoch ms). */
export const idAt = (checkpoint: Checkpoint, at: number): string => {
  const { line, gen, offset, frames } = checkpoint.shared ?? checkpoint;
  return formatPlace({ line, gen, offset, frames, at, complete: checkpoint.complete });
};

/** How much the clocks of two relays may differ, plus the delay of one of them, in ms. */
const maxAheadMs = 10_000;

// Otherwise a wrong or forged id would make the client wait for a long time.
const isNear = (log: EventLog, at: number): boolean => at <= log.timeSoon + maxAheadMs;

const nearTime = (log: EventLog, { at }: Place): number => (isNear(log, at) ? at : -Infinity);

/** Returns whether the log should have reached a time long ago. */
const isLate = (log: EventLog, at: number): boolean => log.newest.offset > 0 && at + maxAheadMs < log.timeNow;
