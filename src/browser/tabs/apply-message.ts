import { relayGap, snapshotAfterGap, snapshotSince } from '../../protocol/snapshot.js';
import { type EventId, parseEventId } from '../../protocol/event-id.js';
import { feedPositionOf, isAfterPosition } from '../../protocol/feed-position.js';
import type { Received } from '../../protocol/event-line.js';
import type { Missed } from '../../protocol/gap.js';
import type { Batch, Welcome } from './tab-message.js';

/** The events that a tab emits for a message of the leader, and the id that it reaches. */
export interface Applied {
  readonly events: readonly Received[];
  readonly id: string | undefined;
}

/**
 * Returns the state of the feed for a tab that joins a leader.
 *
 * A tab that resumes at an earlier id, after a reload, receives a gap from that id on, because the leader stores no events.
 *
 * @param lastId - the id that this tab has reached; `undefined` if it has none
 * @param now - in epoch ms
 */
export const applyWelcome = (
  lastId: string | undefined,
  { id, shiftMs, snapshot, watermark }: Welcome,
  now: number,
): Applied => {
  const since = Math.min(now, watermark?.at ?? now);
  const missed = missedBetween(lastId, id, shiftMs);
  const state = missed === undefined ? snapshotSince(snapshot, since) : snapshotAfterGap(snapshot, missed);
  return {
    events: watermark === undefined ? state : [...state, watermark],
    id: isAfter(lastId, id) ? lastId : (id ?? lastId),
  };
};

/**
 * Returns the events of a batch that are new for this tab.
 *
 * A new leader resumes at the last id that it has reached. A tab that has reached a later id drops the events that it has already emitted. A tab
 * that has reached an earlier id emits a gap.
 *
 * @param lastId - the id that this tab has reached
 */
export const applyBatch = (lastId: string | undefined, { from, to, shiftMs, events }: Batch): Applied => {
  const begin = from ?? to;
  if (isAfter(lastId, begin))
    return {
      events: from === to ? events : newEvents(lastId, from, to, events),
      id: isAfter(lastId, to) ? lastId : to,
    };
  const missed = missedBetween(lastId, begin, shiftMs);
  return { events: missed === undefined ? events : [relayGap(missed), ...events], id: to ?? lastId };
};

// An id counts every event except watermarks.
const newEvents = (
  lastId: string | undefined,
  from: string | undefined,
  to: string | undefined,
  events: readonly Received[],
): readonly Received[] => {
  const [reached, begin, end] = [parseEventId(lastId), parseEventId(from), parseEventId(to)];
  if (end !== undefined && isAfter(lastId, to)) return [];
  if (reached === undefined || begin === undefined || reached.epoch !== end?.epoch) return events;
  if (reached.seq >= end.seq) return [];
  if (feedPositionOf(end)) return afterFrames(events, end.frames - reached.frames);
  const counted = events.filter(({ type }) => type !== 'watermark').length;
  // The relay has skipped events: the remaining ones are later than the skipped ones.
  if (counted !== end.seq - begin.seq) return events;
  let emitted = reached.seq - begin.seq;
  return events.filter(({ type }) => type === 'watermark' || (emitted -= 1) < 0);
};

// In a cluster an id counts the frames and events of the owner. A change of the owner adds events that no id counts.
const afterFrames = (events: readonly Received[], count: number): readonly Received[] => {
  let known = events.filter(({ type }) => type === 'frame').length - count;
  return events.filter(({ type }) => {
    const isNew = known <= 0;
    if (type === 'frame') known -= 1;
    return isNew || type === 'watermark';
  });
};

/** Returns the loss of a tab between its id and the next one; `undefined` if there is none. */
const missedBetween = (lastId: string | undefined, next: string | undefined, shiftMs: number): Missed | undefined => {
  if (lastId === undefined || next === undefined || lastId === next) return undefined;
  const [reached, other] = [parseEventId(lastId), parseEventId(next)];
  const isSameLog = reached !== undefined && reached.epoch === other?.epoch;
  if (isSameLog && reached.seq >= other.seq) return undefined;
  if (isAfter(lastId, next)) return undefined;
  const to = (other?.at ?? 0) + shiftMs;
  const frames = isSameLog ? other.frames - reached.frames : undefined;
  return { from: reached === undefined ? to : reached.at + shiftMs, to, frames };
};

const isAfter = (lastId: string | undefined, other: string | undefined): boolean => {
  const [reached, next] = [parseEventId(lastId), parseEventId(other)];
  if (reached === undefined || next === undefined) return false;
  return reached.epoch === next.epoch ? reached.seq > next.seq : isLaterInCluster(reached, next);
};

const isLaterInCluster = (one: EventId, other: EventId): boolean => {
  const [position, before] = [feedPositionOf(one), feedPositionOf(other)];
  return position !== undefined && before !== undefined && isAfterPosition(position, before) === true;
};
