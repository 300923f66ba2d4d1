import type { ClusterEvent, Disconnected, FeedEvent, Gap, LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import { clusterMeanings, createTradeFeedError } from '../protocol/failures/classify.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createGap, notBefore, type Outage } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import { type Frame, frameAt } from '../protocol/frame.js';
import {
  afterRecord,
  between,
  type Countable,
  missedBetween,
  type Place,
  type PositionedFeed,
} from '../protocol/place.js';
import type { Ownership } from './election/election.js';
import type { Origin } from '../log/line-reader.js';
import { type FeedMessage, hasConnection, isEvent, isStatus } from './messages.js';
import { notBegun, type Publisher, shifted } from './publisher.js';

interface OpenOutage extends Pick<Outage, 'from' | 'failure'> {
  /** Where messages began to be missing: the place of a client that resumes before the gap. */
  readonly since?: Place | undefined;
  /** `away`: messages may be missing. `rest`: with `deliveryDelayMs`, it goes on after its gap, and frames arrive. */
  readonly is?: 'away' | 'rest' | undefined;
}

/** What the owner's connection was at a place. */
interface StatusBefore {
  readonly owner: string;
  readonly isOpen: boolean;
  /** Its gap follows. */
  readonly outage: Pick<Outage, 'from' | 'failure'> | undefined;
}

/** Counts records: what was read from a store because it had been missed, and what was emitted but isn't in the line. */
export interface LineCounts {
  fetched: number;
  surplus: number;
}

export type EmitEvent<Added extends ClusterEvent> = (event: FeedEvent | Added) => void;

/** How much faster one machine's clock may run than another's. */
const maxDrift = 0.001;

/** The owner's connection, as the subscribers know it. `away`: it was open when messages stopped. */
type Connection = 'new' | 'open' | 'down' | 'away';

/**
 * Emits the owners' frames and events in the order of the line, once, with a `gap` in place of those that didn't arrive.
 * Has no timer and no I/O. `now` is a monotonic time in ms.
 */
export class Follower implements PositionedFeed {
  readonly #feed: Feed;
  readonly #emit: EmitEvent<OwnerChanged>;
  readonly #counts: LineCounts;
  /** Where it is in the line; the time of the stream is `at`. */
  #place: Place | undefined;
  /** The owner that it emits, whether that one has sent its `end`, and what is added to its times. */
  #owner = { gen: 0, id: '', hasEnded: false, laterMs: 0 };
  #connection: Connection = 'new';
  /** How many connections have opened, and from when on frames of the last one can be missing. */
  #opened = { count: 0, from: -Infinity };
  /** The current outage. Its gap follows once the owner's connection is complete. */
  #outage: OpenOutage | undefined;
  /**
   * The stream's time minus the monotonic clock, when a message last arrived. Messages arrive late but never early, so the
   * largest difference that any message has shown is the best estimate.
   */
  #lead = { ms: -Infinity, at: -Infinity };

  constructor(feed: Feed, emit: EmitEvent<OwnerChanged>, counts: LineCounts = { fetched: 0, surplus: 0 }) {
    this.#feed = feed;
    this.#emit = emit;
    this.#counts = counts;
  }

  receive(received: FeedMessage, now: number, origin: Origin = 'live'): void {
    if (received.line === notBegun || this.#isOutdated(received)) return;
    const laterMs = this.#laterMs(received, now);
    const message = later(received, laterMs, this.#lead.ms + now);
    const have = this.#place;
    const answer = between(have, message);
    const isNext = answer.type === 'next';
    const isNew = have?.gen !== message.gen;
    if (answer.type === 'old' || (isNext && !isNew && !this.#provesTime(message))) return;
    // What was sent some time ago shows neither the time, nor that its owner lives.
    if (origin === 'live') this.#noteTime(message.at, now);
    const skip = isNext ? answer.skip : 0;
    if (origin === 'missed') this.#counts.fetched += message.count - skip;
    if ('surplus' in answer) this.#counts.surplus += answer.surplus;
    const { from: openedAt } = this.#opened;
    const wasOpen = this.#connection === 'open' || this.#connection === 'away';
    this.#owner = { gen: message.gen, id: message.owner, hasEnded: message.kind === 'end', laterMs };
    if (have && isNew && this.#connection !== 'new') this.#changeOwner(message, have);
    if (have && !isNext) this.#miss(message, have);
    else if (this.#connection === 'away') this.#return(message);
    if (skip === 0) this.#place = placeOf(message, this.#place);
    if (!isNext) this.#rejoin(message);
    this.#take(message, skip);
    if (have && wasOpen && isReplaced(message, have))
      this.#outage ??= { from: Math.max(have.complete, openedAt), failure: replacedAt(have.at) };
  }

  /** Takes the place after a message, for an owner that has followed nobody. */
  join(message: FeedMessage): void {
    const records: readonly Countable[] = message.kind === 'event' ? [message.event] : [];
    const frames = message.kind === 'batch' ? message.framesOf(0, 0) : [];
    const { gen, owner: id, kind, at } = message;
    this.#place = [...records, ...frames].reduce((place, record) => afterRecord(place, record, at), placeOf(message));
    this.#owner = { gen, id, hasEnded: kind === 'end', laterMs: 0 };
  }

  /**
   * Goes on after a place of the line, for a client that has what is before it.
   *
   * @param before - what the connection was there
   */
  resume(place: Place, { owner, isOpen, outage }: StatusBefore): void {
    this.#place = place;
    this.#owner = { gen: place.gen, id: owner, hasEnded: false, laterMs: 0 };
    this.#opened = { count: 1, from: -Infinity };
    this.#connection = isOpen ? 'open' : 'down';
    this.#outage = outage;
  }

  /** Whether a publisher of this replica sends next what this follower emits next. */
  expects({ place }: Publisher): boolean {
    const { offset, gen } = this.#place ?? {};
    const isComplete = this.#outage === undefined && this.#connection === 'open' && this.#owner.laterMs === 0;
    return offset === place.offset && gen === place.gen && this.#owner.id === place.owner && isComplete;
  }

  /** Emits the expected frame. @param at - when the owner received it, as its messages say */
  next(frame: Frame, at: number): void {
    this.#emitFrame(frameAt(frame, at, this.#opened.count), Infinity);
  }

  /** Whether it emits this owner's frames, with no earlier ones left. */
  follows(gen: number, owner: string): boolean {
    return this.#place?.gen === gen && this.#owner.id === owner;
  }

  get emitted(): Ownership {
    return { gen: this.#owner.gen, owner: this.#owner.id };
  }

  get hasEnded(): boolean {
    return this.#owner.hasEnded;
  }

  /** When the last live message arrived; `-Infinity` before. */
  get heardAt(): number {
    return this.#lead.at;
  }

  /** Whether it has emitted `opened`. */
  get hasOpened(): boolean {
    return this.#opened.count > 0;
  }

  /** The end of what it has emitted or reported as missing. */
  get line(): Place | undefined {
    return this.#place;
  }

  // A client that resumes before the gap receives `opened` and the gap, so only the gap moves the position.
  get position(): Place | undefined {
    return this.#outage?.since ?? this.#place;
  }

  /** Handles missing messages of the owner. @param why - `away` if the engine is unreachable, `behind` otherwise */
  away(why: 'away' | 'behind'): void {
    const since = this.#place;
    if (since === undefined || this.#connection === 'down' || this.#connection === 'away') return;
    // Earlier messages can still arrive, so the time of the stream stays where it is.
    const failure = missing(why, since.at);
    this.#outage ??= { from: since.complete, failure, since, is: 'away' };
    this.#connection = this.#connection === 'open' ? 'away' : 'down';
    this.#emit({ type: 'disconnected', at: since.at, failure });
  }

  /** Returns the stream's current time, in epoch ms; `undefined` before the first live message. */
  timeAt(now: number): number | undefined {
    return this.#place && this.heardAt !== -Infinity ? this.#lead.ms + now : undefined;
  }

  /**
   * If the store has lost data, two owners can use the same number, and a later line can have lower ones. An `end` that
   * was read from the store of the line may come before what was sent earlier.
   */
  #isOutdated({ gen, owner }: FeedMessage): boolean {
    const { gen: own = 0 } = this.#place ?? {};
    return gen < own || (gen === own && (owner !== this.#owner.id || this.#owner.hasEnded));
  }

  /**
   * Whether nothing of the stream is missing before the time of a beat. An owner that was replaced sends beats while it
   * has no connection, and one before the `opened` of the next one.
   */
  #provesTime({ kind, phase, settling }: FeedMessage): boolean {
    if (kind !== 'beat' || this.#connection !== 'open' || settling === undefined) return true;
    const isKnown = this.#outage !== undefined || (this.#place !== undefined && !isComplete(this.#place));
    return phase === 'open' && isKnown;
  }

  /**
   * Returns what to add to a message's time, so that the stream's doesn't go back: an owner that has followed nobody
   * doesn't know it. If only the first message was handled late, less is enough from then on.
   */
  #laterMs({ gen, at }: FeedMessage, now: number): number {
    const have = this.#place;
    if (have === undefined) return 0;
    if (have.gen !== gen) return Math.max(0, have.at - at);
    const { laterMs } = this.#owner;
    return laterMs && Math.max(0, have.at - at, Math.min(laterMs, this.#lead.ms + now - at));
  }

  #changeOwner({ gen, owner, at }: FeedMessage, { complete }: Place): void {
    const failure = createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: complete });
    const { from = Math.max(complete, this.#opened.from), since } = this.#outage ?? {};
    // How many frames there were between two connections is unknown.
    this.#outage = { from, failure, since: since && { ...since, holes: NaN } };
    this.#connection = 'down';
    this.#reach(at);
    this.#emit({ type: 'owner-changed', at, owner, generation: gen });
  }

  /** Begins an outage, because messages didn't arrive. */
  #miss(message: FeedMessage, have: Place): void {
    const known = this.#outage;
    const from = known?.from ?? Math.max(have.complete, this.#opened.from);
    const since = known?.since ?? (have.gen === message.gen ? have : { ...have, holes: NaN });
    // The failure of one that rests ended before its gap.
    const failure = known === undefined || known.is === 'rest' ? missing('behind', have.at) : known.failure;
    this.#outage = { from, failure, since };
    // The gap of a connection that settles follows later.
    const isToldLater = message.settling === undefined || isStatus(message);
    if (this.#connection === 'open' && !isToldLater) this.#emitDown({ type: 'disconnected', at: have.at, failure });
  }

  /** Messages arrive again, and none is missing. */
  #return(message: FeedMessage): void {
    // What subscribers know as an outage goes on if the owner's connection has ended meanwhile.
    const lost = message.kind === 'event' && message.event.type === 'disconnected' ? message.event : undefined;
    if (this.#outage?.is === 'away') this.#outage = lost && { from: this.#outage.from, failure: lost.failure };
    this.#connection = 'down';
    if (!isStatus(message) && hasConnection(message)) this.#emitOpened(message.at, message.settling);
  }

  /** Says what the connection is after missing messages, and ends their outage unless the connection settles. */
  #rejoin(message: FeedMessage): void {
    const { at, settling } = message;
    if (isStatus(message) || !hasConnection(message)) return;
    if (this.#connection !== 'open') this.#emitOpened(at, settling);
    if (settling === undefined && !isEvent(message, 'gap')) this.#endOutage(at, settling);
  }

  #take(message: FeedMessage, skip: number): void {
    const place = this.#place;
    if (place === undefined) return;
    const { at, settling } = message;
    const complete = settling === undefined ? Infinity : Math.max(message.complete, place.complete);
    switch (message.kind) {
      case 'batch':
        // An owner that has claimed again may have kept its connection.
        if (this.#connection !== 'open') this.#emitOpened(at, settling);
        if (this.#outage && this.#outage.is !== 'rest') this.#endOutage(at, settling);
        for (const frame of message.framesOf(this.#opened.count, 0).slice(skip)) this.#emitFrame(frame, complete);
        return;
      case 'event':
        this.#moveTo(message.event, Math.max(at, place.at), complete);
        return this.#emitEvent(message.event, settling);
      case 'beat':
        this.#place = { ...place, at, complete: Math.min(at, complete) };
        // The record may not have arrived.
        if (message.event && this.#connection !== 'down') this.#emitEvent(notBefore(message.event, place.at), settling);
        if (this.#connection !== 'new') this.#emit({ type: 'watermark', at });
        return;
      case 'end':
        this.#place = { ...place, at: Math.max(place.at, Math.min(at, complete)), complete: Math.min(at, complete) };
    }
  }

  #moveTo(record: Countable, at: number, complete: number): void {
    if (this.#place) this.#place = { ...afterRecord(this.#place, record, at), complete: Math.min(at, complete) };
  }

  #emitFrame(frame: Frame, complete: number): void {
    this.#moveTo(frame, frame.receivedAt, complete);
    this.#emit(frame);
  }

  #emitEvent(event: LifecycleEvent, settling: Settling): void {
    if (event.type === 'gap') return this.#emitGap(event, settling);
    if (event.type === 'opened') return this.#emitOpened(event.at, settling);
    if (event.type !== 'disconnected') return this.#emit(event);
    const { at, failure } = event;
    if (failure.stage === 'stream') {
      const from = Math.max(Math.min(failure.endedAt, at), this.#opened.from);
      this.#outage = { from, failure, ...this.#outage, is: undefined };
    }
    this.#emitDown(event);
  }

  #emitDown(event: Disconnected): void {
    this.#connection = 'down';
    this.#emit(event);
  }

  /** The owner's gap says from when its connection is complete. Where it begins differs for each replica. */
  #emitGap({ to }: Gap, settling: Settling): void {
    const outage = this.#outage;
    if (outage?.is === 'rest' && to <= outage.from) this.#outage = undefined;
    else this.#endOutage(to, settling);
  }

  #endOutage(to: number, settling: Settling): void {
    if (this.#outage === undefined || this.#place === undefined) return;
    const { from, failure, since } = this.#outage;
    // While the connection settles, more may be missing than messages.
    const missed = since && settling === undefined ? missedBetween(since, this.#place) : undefined;
    const gap = createGap(from, Math.max(to, this.#opened.from), failure);
    this.#outage = typeof settling === 'number' ? { from: gap.to, failure, is: 'rest' } : undefined;
    this.#opened = { ...this.#opened, from: gap.to };
    this.#reach(-Infinity, gap.to);
    this.#emit(missed === undefined ? gap : { ...gap, missed });
  }

  #emitOpened(at: number, settling: Settling): void {
    this.#opened = { count: this.#opened.count + 1, from: at };
    this.#reach(at);
    this.#connection = 'open';
    // A connection that was replaced while it settled: its outage goes on.
    if (this.#outage?.is === 'rest') this.#outage = { ...this.#outage, is: undefined };
    const known = settling !== 'auto' && { completeFrom: settling ?? at };
    this.#emit({ type: 'opened', at, feed: this.#feed, connection: this.#opened.count, ...known });
    // Frames can come late, so the stream has its own time from the beginning: no clock may close a window before.
    if (this.#opened.count === 1) this.#emit({ type: 'watermark', at });
  }

  /** No event before this time follows. */
  #reach(at: number, complete = -Infinity): void {
    const place = this.#place;
    if (place) this.#place = { ...place, at: Math.max(at, place.at), complete: Math.max(complete, place.complete) };
  }

  #noteTime(at: number, now: number): void {
    const { ms, at: notedAt } = this.#lead;
    // Clocks drift, so an old maximum counts less.
    this.#lead = { ms: Math.max(at - now, ms - (now - notedAt) * maxDrift), at: now };
  }
}

/** @param now - the stream's time. Frames of one message can be of a longer time than the first one is late. */
const later = (message: FeedMessage, ms: number, now: number): FeedMessage => {
  if (ms === 0) return message;
  const { at, complete, settling } = message;
  const latest = Math.max(now, at + ms);
  const times = {
    at: at + ms,
    complete: complete + ms,
    settling: typeof settling === 'number' ? settling + ms : settling,
  };
  if (message.kind === 'batch') {
    const framesOf = (connection: number): readonly Frame[] =>
      message.framesOf(connection, ms).map((frame) => frameAt(frame, Math.min(frame.receivedAt, latest), connection));
    return { ...message, ...times, framesOf };
  }
  return 'event' in message && message.event
    ? { ...message, ...times, event: shifted(message.event, ms) }
    : { ...message, ...times };
};

type Settling = FeedMessage['settling'];

/** @param times - the place whose times it gets */
export const placeOf = (of: Place, times: Place = of): Place => {
  const { line, gen, offset, frames, holes } = of;
  return { line, gen, offset, frames, holes, at: times.at, complete: times.complete };
};

export const isComplete = ({ at, complete }: Place): boolean => complete >= at;

const missing = (why: 'away' | 'behind', endedAt: number): TradeFeedError =>
  createFailure(clusterMeanings[why], { stage: 'stream', endedAt });

export const replacedAt = (endedAt?: number): TradeFeedError =>
  createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced', endedAt });

/** Whether its owner's connection was replaced, which no event says. */
const isReplaced = (message: FeedMessage, have: Place): boolean =>
  message.settling !== undefined && (isComplete(have) || !hasConnection(message) || isEvent(message, 'opened'));
