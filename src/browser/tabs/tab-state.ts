import { BehaviorSubject, EMPTY, from, type Observable, tap } from 'rxjs';
import { type Received, writeEventLine } from '../../protocol/event-line.js';
import type { Gap, LifecycleEvent, Watermark } from '../../protocol/event.js';
import {
  afterEvent,
  afterFrame,
  type FeedState,
  noFeed,
  relayGap,
  type Snapshot,
  snapshotAfterGap,
  snapshotAt,
  snapshotNotBefore,
  snapshotOfNew,
  stateOf,
} from '../../protocol/feed-state.js';
import { isAfter, parsePlace, type Place } from '../../protocol/place.js';
import { createConnectionFacts, type DetectedCode } from '../relay-connection.js';
import { eventsOf } from '../relay-stream.js';
import { ResumePoint } from '../resume-point.js';

/** Messages between tabs. They're plain data, because a structured clone loses an object's class. */
export type TabMessage =
  /** A follower asks for the state, to join or to check on the leader. It knows a leader of this term. */
  | { readonly type: 'ask'; readonly term: number }
  /** A tab receives its own mark after every message posted before it. */
  | { readonly type: 'mark'; readonly tab: string }
  /** A leader starts. Each one has a higher term than the previous one. `isOpen`: its stream already runs. */
  | { readonly type: 'leads'; readonly term: number; readonly isOpen: boolean }
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

/** What a tab is for the other tabs. Only a tab that's alone, claims or leads has a stream of its own. */
export type Role =
  /** It asks for a leader. */
  | 'asking'
  /** It emits what the leader posts. */
  | 'following'
  /** The same, but the leader is silent, and was asked whether it's alive. */
  | 'checking'
  /** The leader doesn't answer, so the stream has stalled. */
  | 'doubting'
  /** It steals the lock of that leader. */
  | 'seizing'
  /** It hears no leader. */
  | 'alone'
  /** The same, and it steals the lock if no leader was ever heard. */
  | 'claiming'
  | 'leading';

/** What happens to a tab: a message of the leader that it follows (`joined`) or can't follow, or news of the lock. */
export type Input = 'silent' | 'joined' | 'heard' | 'granted' | 'lost' | 'refused';

type Rules = Readonly<Partial<Record<Input, Role>>>;
const rest = { joined: 'following', granted: 'leading' } satisfies Rules;
const steady = { ...rest, heard: 'following', lost: 'asking' } satisfies Rules;

/** The next role for each input; the others change nothing. `silentMs`: how long until `silent`. */
export const roles: Readonly<Record<Role, Rules & { readonly silentMs?: number }>> = {
  asking: { ...rest, silentMs: 1_500, silent: 'alone', refused: 'alone' },
  following: { ...steady, silentMs: 2_000, silent: 'checking' },
  checking: { ...steady, silentMs: 1_000, silent: 'doubting' },
  doubting: { ...rest, heard: 'asking', silentMs: 1_000, silent: 'seizing' },
  seizing: { ...rest, heard: 'asking', silentMs: 1_500, silent: 'alone' },
  alone: { ...rest, silentMs: 2_500, silent: 'claiming' },
  claiming: rest,
  leading: { lost: 'asking' },
};

/** What a tab knows, as a leader or as a follower: the point it has reached, the feed's state, and the leader. */
export class TabState extends ResumePoint {
  readonly role$ = new BehaviorSubject<Role>('asking');
  /** The newest leader's term; 0 if this tab has neither heard one nor led. */
  term = 0;
  #state: FeedState = noFeed;
  /** The state of the feed when this tab lost its leader. */
  #lost: FeedState | undefined;
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
      this.#lost = undefined;
    }
    this.#facts.event(event);
    const { type } = event;
    this.#state =
      type === 'frame' ? afterFrame(this.#state, event.receivedAt, event) : afterEvent(this.#state, event, undefined);
  }

  get role(): Role {
    return this.role$.value;
  }

  get isFollower(): boolean {
    return this.role === 'following' || this.role === 'checking';
  }

  get isOpen(): boolean {
    return this.#state.open !== undefined;
  }

  input(name: Input): void {
    const next = roles[this.role][name];
    if (next !== undefined) this.role$.next(next);
  }

  /** Handles a leader's message. Returns this tab's events for it; `undefined` if it doesn't follow from there on. */
  receive(message: Exclude<TabMessage, { readonly type: 'ask' | 'mark' | 'ended' }>): Observable<Received> | undefined {
    const { isFollower, isOpen } = this;
    const wasOpen = this.#lost !== undefined;
    this.term = message.term;
    if (message.type === 'leads') {
      if (isFollower) return from(message.isOpen ? [] : this.interrupted('relay-lost'));
      // The new stream begins with the state of the feed.
      return wasOpen && !message.isOpen ? EMPTY : undefined;
    }
    this.#facts.bytes();
    const follows = isFollower ? message.type === 'batch' : joins({ id: this.id, isOpen, wasOpen }, message);
    if (!follows) return undefined;
    this.clock.follow(message.shiftMs, message.aheadMs);
    const { events, id = '' } = applyUpdate(this.id, message, this.clock.now());
    return from([...this.#goesOn(message.type, events), ...events]).pipe(tap({ complete: () => this.reached(id, []) }));
  }

  /** Returns the lost state if the same stream continues. The events of another one begin with its state. */
  #goesOn(type: Update['type'], events: readonly Received[]): readonly Received[] {
    const lost = this.#lost;
    if (lost === undefined || events.length === 0) return [];
    this.#lost = undefined;
    const first = events.find((event) => event.type !== 'watermark')?.type ?? 'frame';
    const continues = type === 'batch' && (first === 'frame' || first === 'value');
    return continues ? snapshotNotBefore(lost, this.reachedAt ?? -Infinity) : [];
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
    if (!this.isOpen) return [];
    this.#lost = this.#state;
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
 * Returns whether a tab that doesn't follow yet can follow from a message on. From a batch it can if it has everything
 * before it and knows the state of the feed. A tab whose own stream is open waits for that, so it loses nothing.
 */
export const joins = (
  { id, isOpen, wasOpen }: { readonly id: Id; readonly isOpen: boolean; readonly wasOpen: boolean },
  { type, from, to, shiftMs }: Update,
): boolean => {
  if (type === 'welcome') return !isOpen;
  const knowsState = isOpen ? from !== to : wasOpen;
  return knowsState && id !== undefined && gapBetween(id, from ?? to, shiftMs) === undefined;
};

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
  const gap = gapBetween(lastId, begin, shiftMs);
  const id = isAfterId(lastId, to) ? lastId : (to ?? lastId);
  if (type === 'batch') {
    if (gap !== undefined) return { events: [gap, ...events], id };
    return { events: from !== to && isAfterId(lastId, begin) ? newEvents(lastId, begin, to, events) : events, id };
  }
  const watermarks = events.filter((event) => event.type === 'watermark');
  const state = stateOf(events as Snapshot);
  if (gap !== undefined) return { events: [...snapshotAfterGap(state, gap), ...watermarks], id };
  // A frame may be later than the last watermark, but the leader has reached its time.
  const reachedAt = (parsePlace(to)?.at ?? -Infinity) + shiftMs;
  const since = Math.max(reachedAt, Math.min(now, ...watermarks.map(({ at }) => at)));
  const snapshot = lastId === undefined ? snapshotOfNew(state, since) : snapshotAt(state, since);
  return { events: [...snapshot, ...watermarks], id };
};

// An id counts every event except watermarks. If a cluster's owner changed, or a relay skipped events, ids and events
// don't match, and only frames are counted, from the end.
const newEvents = (lastId: Id, from: Id, to: Id, events: readonly Received[]): readonly Received[] => {
  if (isAfterId(to, lastId) === false) return [];
  const [reached, begin, end] = [lastId, from, to].map(parsePlace);
  if (reached === undefined || end === undefined || !isCounted(reached, end)) return events;
  const all = events.filter(({ type }) => type !== 'watermark');
  const hasAll = isCounted(begin, end) && all.length === end.offset - (begin as Place).offset;
  const counted = hasAll ? all : all.filter(({ type }) => type === 'frame');
  const left = hasAll ? end.offset - reached.offset : end.frames - reached.frames;
  const known = events.findIndex((event) => event === counted[counted.length - left - 1]);
  return events.filter((event, n) => n > known || event.type === 'watermark');
};

/** Returns the gap of what a tab has lost between its id and the next one, if anything. */
const gapBetween = (lastId: Id, next: Id, shiftMs: number): Gap | undefined => {
  if (lastId === undefined || next === undefined || lastId === next || isAfterId(next, lastId) === false)
    return undefined;
  const [reached, other] = [parsePlace(lastId), parsePlace(next)];
  const to = (other?.at ?? 0) + shiftMs;
  const frames = reached && other && isCounted(reached, other) ? other.frames - reached.frames : undefined;
  return relayGap({ from: reached === undefined ? to : reached.complete + shiftMs, to, frames });
};

/** Whether the counts of two places begin at the same one: each owner of a cluster counts from 0. */
const isCounted = (one: Place | undefined, other: Place): boolean => one?.line === other.line && one.gen === other.gen;

const isAfterId = (one: Id, other: Id): boolean | undefined => {
  const [id, before] = [parsePlace(one), parsePlace(other)];
  return id && before && isAfter(id, before);
};
