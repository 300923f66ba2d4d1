import type { Missed } from '../protocol/gap.js';
import { type EventId, parseEventId } from './event-id.js';
import type { EventLog, Position } from './event-log.js';

/** How a client came: for the first time, back in time, or back too late for everything. */
export type Joined = 'new' | 'resumed' | 'behind';

/** Where a client begins. */
export interface Joining {
  readonly joined: Joined;
  readonly place: Position;
  /** What it has missed, if it is `behind`. */
  readonly missed?: Missed;
  /** It has received events up to this time, in epoch ms, at another relay: none up to it is sent again. */
  readonly seenUntil?: number;
}

/**
 * Decides where a client begins. Pure, apart from the clock of the log.
 *
 * A client of this log goes on where it was. One of another log goes on after its time. Both get `maxReplayBytes` at most: a gap takes the
 * place of what is older.
 */
export const joining = (log: EventLog, epoch: string, lastEventId: string | undefined, now: number): Joining => {
  const id = parseEventId(lastEventId);
  if (id === undefined || (id.epoch === epoch && id.seq > log.newest.seq)) return { joined: 'new', place: log.newest };
  return id.epoch === epoch ? backHere(log, id, now) : fromElsewhere(log, id, now);
};

const backHere = (log: EventLog, id: EventId, now: number): Joining => {
  const known = log.positionAt(id.seq);
  const first = log.replayPlace();
  if (known === undefined || known.seq < first.seq) {
    const { at, frames } = known ?? id;
    const missed = { from: at, to: log.timeAt(first), frames: Math.max(0, first.frames - frames) };
    return { joined: 'behind', place: first, missed };
  }
  const joined = { joined: 'resumed', place: known } as const;
  // It was still receiving nothing, because of what another relay had sent it: its id has the ms after that.
  return id.at > Math.ceil(known.at) && isNear(log, id.at, now) ? { ...joined, seenUntil: id.at - 1 } : joined;
};

const fromElsewhere = (log: EventLog, { at }: EventId, now: number): Joining => {
  const seenUntil = isNear(log, at, now) ? at : undefined;
  const place = later(log.placeAfter(at), log.replayPlace());
  const to = Math.max(seenUntil ?? -Infinity, log.timeAt(place));
  const behind = { joined: 'behind', place, missed: { from: at, to, frames: undefined } } as const;
  return seenUntil === undefined ? behind : { ...behind, seenUntil };
};

const later = (one: Position, other: Position): Position => (one.seq > other.seq ? one : other);

/** How far the clocks of two relays may be apart, in ms, and how far one may be behind the other. */
const mostAheadMs = 10_000;

/** Says whether a time is so near that the log gets there soon: a client must not wait for long, whatever it says. */
export const isNear = (log: EventLog, at: number, now: number): boolean => at <= log.timeNow(now) + mostAheadMs;
