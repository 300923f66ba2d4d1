import { hasBeenOpen, relayGap, snapshotAfterGap, snapshotNotBefore, snapshotSince } from '../protocol/snapshot.js';
import { framesBetween } from '../protocol/feed-position.js';
import type { LifecycleEvent } from '../protocol/event.js';
import type { Missed } from '../protocol/gap.js';
import type { EventLog } from './event-log.js';
import type { Position } from './log-entries.js';
import { isLate, isNear, type SeenPosition, type Start } from './start-position.js';

/** Where a client is in a log, and which losses still need a gap. */
export interface ClientProgress {
  readonly position: Position;
  /** The number of frames that were sent. */
  readonly sent: number;
  /** The number of frames that were not sent, and that a gap has reported. */
  readonly missed: number;
  /** Events up to this time, in epoch ms, are skipped, because another relay has sent events up to this time. */
  readonly seenUntil: number | undefined;
  /** Events up to this position of the cluster are skipped, because this client has received them, perhaps from another replica. */
  readonly seen: SeenPosition | undefined;
  /** Whether a gap covers the events that are skipped because of `seenUntil`. */
  readonly isSkipReported: boolean;
  /** Since when frames may be missing that no gap has reported, in epoch ms. The gap is sent after the next `opened`, and ends there. */
  readonly missingSince: number | undefined;
}

/** The events to send, and the progress after them. */
export interface Step {
  readonly progress: ClientProgress;
  readonly events: readonly LifecycleEvent[];
}

/** Returns the first step of a client: the state of the feed, and a gap if the client has missed something. */
export const firstStep = (log: EventLog, { joined, position, missed, seenUntil, seen }: Start, now: number): Step => {
  const progress: ClientProgress = {
    ...{ position, sent: 0, missed: missed?.frames ?? 0, seenUntil, seen },
    ...{ isSkipReported: false, missingSince: undefined },
  };
  if (missed !== undefined) return withGap(progress, missed);
  const events =
    joined === 'new'
      ? snapshotSince(position.snapshot, log.joinedAt(now))
      : snapshotNotBefore(position.snapshot, Math.max(position.at, seenUntil ?? seen?.at ?? -Infinity));
  return { progress, events };
};

/** Skips events that the log has removed, or that another relay has sent. The step may have no events. */
export const skip = (progress: ClientProgress, log: EventLog, now: number): Step => {
  if (isBehind(progress, log)) return skipToOldest(progress, log);
  if (progress.seen !== undefined) return skipToSeen(progress, progress.seen, log, now);
  return progress.seenUntil === undefined ? { progress, events: [] } : skipSeen(progress, progress.seenUntil, log, now);
};

/** Returns the progress after the events up to a position were sent. */
export const advance = (progress: ClientProgress, end: Position): ClientProgress => ({
  ...progress,
  position: end,
  sent: progress.sent + end.frames - progress.position.frames,
});

/** Returns whether the log has removed events that the client has not received. */
export const isBehind = ({ position }: ClientProgress, log: EventLog): boolean => position.seq < log.oldest.seq;

const skipToOldest = (progress: ClientProgress, log: EventLog): Step => {
  const { oldest } = log;
  const { position, seenUntil, seen } = progress;
  const to = Math.max(log.timeAt(oldest), seenUntil ?? -Infinity);
  const lost = oldest.frames - position.frames;
  const frames = seen === undefined ? lost : oldest.shared && framesBetween(seen, oldest.shared);
  const missed = { from: seen?.at ?? position.at, to, frames };
  // The gap ends at `seenUntil` or later, so it also reports the events that `skipSeen` skips.
  const next = {
    ...progress,
    position: oldest,
    missed: progress.missed + (frames ?? lost),
    seen: undefined,
    isSkipReported: true,
  };
  return position.snapshot === oldest.snapshot ? { progress: next, events: [relayGap(missed)] } : withGap(next, missed);
};

// Needed if this replica is behind the replica that the client comes from, or has missed events that the client has received.
const skipToSeen = (progress: ClientProgress, seen: SeenPosition, log: EventLog, now: number): Step => {
  const { position } = progress;
  const end = log.positionUntil(seen) ?? log.oldest;
  const next = log.positionAt(end.seq + 1);
  const isReached = end.shared?.run === seen.run && end.shared.sequence === seen.sequence;
  const changes = end.snapshot === position.snapshot ? [] : snapshotNotBefore(end.snapshot, seen.at);
  const here = { ...progress, position: end };
  if (!isReached && next !== undefined && (end.shared === undefined || log.isGap(next))) {
    // This gap, or the beginning of the log, covers events that the client may have: its gap begins where the client was.
    const frames = next.shared && framesBetween(seen, next.shared);
    const after = { ...here, position: next, seen: undefined, missed: progress.missed + (frames ?? 0) };
    return withGap(after, { from: seen.at, to: Math.max(seen.at, next.at), frames });
  }
  if (isReached || next !== undefined) return { progress: { ...here, seen: undefined }, events: changes };
  // A client with a forged position, or with one that was lost with the store, would wait for ever.
  if (isLate(log, seen.at, now))
    return withGap({ ...here, seen: undefined }, { from: seen.at, to: log.timeNow(now), frames: undefined });
  return { progress: here, events: changes };
};

// Needed if the source of this relay is later than the source of the previous relay, or has another clock.
const skipSeen = (progress: ClientProgress, seenUntil: number, log: EventLog, now: number): Step => {
  const { position, missingSince, isSkipReported } = progress;
  if (position.at > seenUntil || !isNear(log, seenUntil, now))
    return { progress: { ...progress, seenUntil: undefined }, events: [] };
  const end = log.positionAfter(seenUntil);
  if (end.seq <= position.seq) return { progress, events: [] };
  const next = { ...progress, position: end };
  if (missingSince !== undefined) return withGap(next, { from: missingSince, to: seenUntil, frames: undefined });
  const state = end.snapshot === position.snapshot ? [] : snapshotNotBefore(end.snapshot, seenUntil);
  if (isSkipReported || end.frames === position.frames) return { progress: next, events: state };
  const missed = { from: log.earliestAfter(position.seq), to: seenUntil, frames: undefined };
  const events = state.length === 0 ? [relayGap(missed)] : snapshotAfterGap(end.snapshot, missed);
  return { progress: { ...next, isSkipReported: true }, events };
};

// The end of a gap is unknown until the feed has been open.
const withGap = (progress: ClientProgress, missed: Missed): Step => {
  const { snapshot } = progress.position;
  const from = progress.missingSince ?? missed.from;
  return hasBeenOpen(snapshot)
    ? { progress: { ...progress, missingSince: undefined }, events: snapshotAfterGap(snapshot, { ...missed, from }) }
    : { progress: { ...progress, missingSince: from }, events: snapshot };
};
