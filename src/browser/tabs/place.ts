import { snapshotAfterGap, snapshotSince, relayGap } from '../../protocol/snapshot.js';
import type { Received } from '../../protocol/event-line.js';
import type { Missed } from '../../protocol/gap.js';
import type { Batch, Welcome } from './tab-message.js';

/** What the id of a message of a relay says (`src/relay/event-id.ts` writes it). */
interface Place {
  /** The run of the relay. Places of different runs cannot be compared. */
  readonly run: string;
  /** How many events there were before. */
  readonly seq: number;
  /** How many of them were frames. */
  readonly frames: number;
  /** The time of the last one, in epoch ms. */
  readonly at: number;
}

/** The events that a tab emits for a message, and the id that it has reached then. */
export interface Taken {
  readonly events: readonly Received[];
  readonly id: string | undefined;
}

/**
 * Takes the state of the feed from a leader: for a tab that joins.
 *
 * A tab that remembers an earlier place, from before a reload, gets a gap from there on: the leader holds no events.
 *
 * @param own - the id that this tab has reached; `undefined` when it has none
 * @param now - in epoch ms
 */
export const takeWelcome = (
  own: string | undefined,
  { id, shiftMs, present, watermark }: Welcome,
  now: number,
): Taken => {
  const since = Math.min(now, watermark?.at ?? now);
  const missed = missedBetween(own, id, shiftMs);
  const state = missed === undefined ? snapshotSince(present, since) : snapshotAfterGap(present, missed);
  return { events: watermark === undefined ? state : [...state, watermark], id: isAfter(own, id) ? own : (id ?? own) };
};

/**
 * Takes the part of a batch that is new to this tab.
 *
 * A new leader begins at the place that it has reached itself. A tab that was further drops the events that it has emitted; one that was
 * not so far emits a gap.
 *
 * @param own - the id that this tab has reached
 */
export const takeBatch = (own: string | undefined, { from, to, shiftMs, events }: Batch): Taken => {
  const begin = from ?? to;
  if (isAfter(own, begin))
    return { events: from === to ? events : newEvents(own, from, to, events), id: isAfter(own, to) ? own : to };
  const missed = missedBetween(own, begin, shiftMs);
  return { events: missed === undefined ? events : [relayGap(missed), ...events], id: to ?? own };
};

// Each event counts in an id, but not the watermarks.
const newEvents = (
  own: string | undefined,
  from: string | undefined,
  to: string | undefined,
  events: readonly Received[],
): readonly Received[] => {
  const [mine, begin, end] = [placeOf(own), placeOf(from), placeOf(to)];
  if (mine === undefined || begin === undefined || mine.run !== end?.run) return events;
  if (mine.seq >= end.seq) return [];
  const counted = events.filter(({ type }) => type !== 'watermark').length;
  // Where the relay let events go by, all that is left comes after them.
  if (counted !== end.seq - begin.seq) return events;
  let known = mine.seq - begin.seq;
  return events.filter(({ type }) => type === 'watermark' || (known -= 1) < 0);
};

/** Returns what a tab at `own` misses when it goes on at `next`; `undefined` when that is nothing. */
const missedBetween = (own: string | undefined, next: string | undefined, shiftMs: number): Missed | undefined => {
  if (own === undefined || next === undefined || own === next) return undefined;
  const [mine, other] = [placeOf(own), placeOf(next)];
  const isSameRun = mine !== undefined && mine.run === other?.run;
  if (isSameRun && mine.seq >= other.seq) return undefined;
  const to = (other?.at ?? 0) + shiftMs;
  const frames = isSameRun ? other.frames - mine.frames : undefined;
  return { from: mine === undefined ? to : mine.at + shiftMs, to, frames };
};

const isAfter = (own: string | undefined, other: string | undefined): boolean => {
  const [mine, its] = [placeOf(own), placeOf(other)];
  return mine !== undefined && mine.run === its?.run && mine.seq > its.seq;
};

const placeOf = (id: string | undefined): Place | undefined => {
  const [, run, ...numbers] = /^([\w-]+)\.(\d+)\.(\d+)\.(\d+)/.exec(id ?? '') ?? [];
  const [seq = 0, frames = 0, at = 0] = numbers.map(Number);
  return run === undefined ? undefined : { run, seq, frames, at };
};
