import { EMPTY, from, type Observable, tap } from 'rxjs';
import { type Received, writeEventLine } from '../../protocol/event-line.js';
import type { LifecycleEvent, Watermark } from '../../protocol/event.js';
import { afterEvent, afterFrame, type FeedState, type Missed, noFeed, relayGap } from '../../protocol/feed-state.js';
import { type Snapshot, snapshotAfterGap, snapshotAt, snapshotOfNew, stateOf } from '../../protocol/feed-state.js';
import { isAfterId, parseEventId } from '../../protocol/position.js';
import { createConnectionFacts, type DetectedCode } from '../relay-connection.js';
import { eventsOf } from '../relay-stream.js';
import { ResumePoint } from '../resume-point.js';

/** Messages between tabs. They're plain data, because a structured clone loses an object's class. */
export type TabMessage =
  /** A follower asks for the state, to join or to check on the leader. It knows a leader of this term. */
  | { readonly type: 'ask'; readonly term: number }
  /** A tab receives its own mark after every message posted before it. */
  | { readonly type: 'mark'; readonly tab: string }
  /** A leader starts. Each one has a higher term than the previous one. */
  | { readonly type: 'leads'; readonly term: number }
  /** The feed has ended for all tabs: with a failure as JSON, or complete. */
  | { readonly type: 'ended'; readonly term: number; readonly failure: string | undefined }
  | (Update & { readonly term: number });

export interface Update {
  /** The state of the feed, for tabs that ask; or one message of the relay or of the leader's connection. */
  readonly type: 'welcome' | 'batch';
  /** The ids before and after the events. They're equal if the events don't come from the relay. */
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly lines: readonly string[];
  /** How far the stream's times are ahead of the relay's clock, and of this machine's, in ms. */
  readonly shiftMs: number;
  readonly aheadMs: number;
  /** Set for lines of the relay, whose clock may lag: no lifecycle event is earlier than this, in epoch ms. */
  readonly ownAt?: number | undefined;
}

/** What a tab knows, as a leader or as a follower: the point it has reached, the feed's state, and the leader. */
export class TabState extends ResumePoint {
  /** The newest leader's term. */
  term = 0;
  /** Whether a leader has answered. Later batches are then for this tab. */
  isWelcome = false;
  #state: FeedState = noFeed;
  #watermarks: readonly Watermark[] = [];
  #facts = createConnectionFacts(this.clock);

  /** Records an event that this tab emits. */
  emitted(event: Received): void {
    this.passed(event);
    // Neither is part of the state: the error after `stopped` ends this subscription.
    if (event.type === 'stopped' || event.type === 'value') return;
    if (event.type === 'watermark') this.#watermarks = [event];
    if (event.type === 'opened') {
      this.#facts = createConnectionFacts(this.clock);
      this.#facts.opened();
    }
    this.#facts.event(event);
    const { type } = event;
    this.#state =
      type === 'frame' ? afterFrame(this.#state, event.receivedAt, event) : afterEvent(this.#state, event, undefined);
  }

  /** Handles a leader's message, and emits this tab's events for it. */
  receive(message: Exclude<TabMessage, { readonly type: 'ask' | 'mark' | 'ended' }>): Observable<Received> {
    this.term = message.term;
    this.#facts.bytes();
    if (message.type === 'leads') return EMPTY;
    this.clock.follow(message.shiftMs, message.aheadMs);
    // Only the first answer, and the batches after it, are for this tab.
    if (this.isWelcome === (message.type === 'welcome')) return EMPTY;
    this.isWelcome = true;
    const { events, id = '' } = applyUpdate(this.id, message, this.clock.now());
    return from(events).pipe(tap({ complete: () => this.reached(id, []) }));
  }

  /** Starts a term as the leader. `other`: a later term of another tab, if the clock was set back since. */
  lead(other = this.term): void {
    this.term = Math.max(other + 1, Date.now());
  }

  welcome(): TabMessage {
    return this.update('welcome', this.id, [...this.#state.events, ...this.#watermarks].map(writeEventLine));
  }

  /** Creates a message about the events that brought this leader to its id. */
  update(type: Update['type'], from: Id, lines: readonly string[], ownAt?: number): TabMessage {
    const { id: to, term, clock } = this;
    return { type, term, from, to, lines, shiftMs: clock.shiftMs, aheadMs: clock.aheadMs, ownAt };
  }

  /** Returns the events for losing the leader while the feed was open: the same as for a lost connection. */
  interrupted(code: DetectedCode): readonly LifecycleEvent[] {
    if (this.#state.open === undefined) return [];
    const failure = this.#facts.failure(code);
    const at = this.clock.now();
    return [
      this.stamp({ type: 'disconnected', at, failure }),
      // The first attempt doesn't wait.
      this.stamp({ type: 'reconnecting', at, delayMs: 0, attempt: 1, verdict: failure.verdict }),
    ];
  }
}

type Id = string | undefined;

/**
 * Returns the events that are new for a tab, and the id it reaches with them.
 *
 * A new leader resumes at its own last id. A tab with a later id drops the events it has already emitted. A tab with an
 * earlier one emits a gap, as after a reload, because the leader stores no events.
 */
export const applyUpdate = (
  lastId: Id,
  { type, from, to, shiftMs, lines, ownAt }: Update,
  now: number,
): { readonly events: readonly Received[]; readonly id: Id } => {
  const events = eventsOf(lines, ownAt === undefined ? 0 : shiftMs, ownAt);
  const begin = from ?? to;
  const missed = missedBetween(lastId, begin, shiftMs);
  const id = isAfterId(lastId, to) ? lastId : (to ?? lastId);
  if (type === 'batch') {
    if (missed !== undefined) return { events: [relayGap(missed), ...events], id };
    return { events: from !== to && isAfterId(lastId, begin) ? newEvents(lastId, begin, to, events) : events, id };
  }
  const watermarks = events.filter((event) => event.type === 'watermark');
  const state = stateOf(events as Snapshot);
  if (missed !== undefined) return { events: [...snapshotAfterGap(state, missed), ...watermarks], id };
  // A frame may be later than the last watermark, but the leader has reached its time.
  const reachedAt = (parseEventId(to)?.at ?? -Infinity) + shiftMs;
  const since = Math.max(reachedAt, Math.min(now, ...watermarks.map(({ at }) => at)));
  const snapshot = lastId === undefined ? snapshotOfNew(state, since) : snapshotAt(state, since);
  return { events: [...snapshot, ...watermarks], id };
};

// An id counts every event except watermarks. If a cluster's owner changed, or a relay skipped events, ids and events
// don't match, and only frames are counted, from the end.
const newEvents = (lastId: Id, from: Id, to: Id, events: readonly Received[]): readonly Received[] => {
  if (isAfterId(to, lastId) === false) return [];
  const [reached, begin, end] = [lastId, from, to].map(parseEventId);
  if (reached === undefined || reached.epoch !== end?.epoch) return events;
  const all = events.filter(({ type }) => type !== 'watermark');
  const hasAll = begin?.epoch === end.epoch && all.length === end.seq - begin.seq;
  const counted = hasAll ? all : all.filter(({ type }) => type === 'frame');
  const left = hasAll ? end.seq - reached.seq : end.frames - reached.frames;
  const known = events.findIndex((event) => event === counted[counted.length - left - 1]);
  return events.filter((event, n) => n > known || event.type === 'watermark');
};

/** Returns what a tab has lost between its id and the next one, if anything. */
const missedBetween = (lastId: Id, next: Id, shiftMs: number): Missed | undefined => {
  if (lastId === undefined || next === undefined || lastId === next || isAfterId(next, lastId) === false)
    return undefined;
  const [reached, other] = [parseEventId(lastId), parseEventId(next)];
  const to = (other?.at ?? 0) + shiftMs;
  const frames = reached && reached.epoch === other?.epoch ? other.frames - reached.frames : undefined;
  return { from: reached === undefined ? to : reached.complete + shiftMs, to, frames };
};
