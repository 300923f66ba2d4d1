import type { ClusterEvent, Disconnected, FeedEvent, Gap, LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import { clusterMeanings, createTradeFeedError } from '../protocol/failures/classify.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createGap, type Outage } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import { type Frame, frameAt } from '../protocol/frame.js';
import { type FeedPosition, type PositionedFeed, runOf } from '../protocol/position.js';
import type { Ownership } from './election/election.js';
import { timing } from './election/timing.js';
import type { FeedMessage, MessageHead } from './messages.js';
import { type Publisher, shifted } from './publisher.js';

interface OpenOutage extends Pick<Outage, 'from' | 'failure'> {
  /** How many frames of the owner came before it; `undefined` if its connection ended as well, or its generation did. */
  readonly frames?: number | undefined;
  /** With `deliveryDelayMs`, it goes on after its gap, and frames arrive meanwhile. */
  readonly isRest?: true | undefined;
}

export type EmitEvent<Added extends ClusterEvent> = (event: FeedEvent | Added) => void;

/** How much faster one machine's clock may run than another's. */
const maxDrift = 0.001;
/** How many messages, and bytes of frames, may wait. Beyond that, the new generation begins before the `end`. */
const maxHeld = 10_000;
const maxHeldBytes = 64 * 1024 * 1024;

/**
 * Emits the current owner's frames and events, in order and once, with a `gap` in place of those that didn't arrive.
 * Has no timer and no I/O. `now` is a monotonic time in ms.
 */
export class Follower implements PositionedFeed {
  readonly #feed: Feed;
  readonly #emit: EmitEvent<OwnerChanged>;
  #gen = 0;
  #owner = '';
  #run = '';
  /** The number of the next frame or event of this generation, and that of the next frame. */
  #sequence = 0;
  #frames = 0;
  #connection = 0;
  /** When the stream's last item was, and the last report of another owner that was emitted. */
  #lastAt = 0;
  #shownAt = 0;
  /** Added to this owner's times. */
  #shift = 0;
  /**
   * The stream's time minus the monotonic clock. Messages arrive late but never early, so the largest difference that
   * any message has shown is the best estimate.
   */
  #lead = { ms: 0, at: 0 };
  /** Why no messages arrive, while none do. */
  #isAway: 'away' | 'behind' | undefined;
  /** Whether the engine was unreachable. The machine may have been suspended, and its monotonic clock stopped. */
  #wasCutOff = false;
  /** Reports emitted since the last failure, from an owner that has no connection. */
  #reported: readonly string[] = [];
  #hasEnded = false;
  /** Waiting messages of the next generations, and when the first one arrived. */
  #hold: { readonly messages: FeedMessage[]; bytes: number; readonly since: number } | undefined;
  /** When the last message of this generation arrived. */
  #heardAt = 0;
  /** Whether no connection was complete yet, or has ended, so that nothing is missing before. */
  #isFirst = true;
  /** The current outage. Its gap follows once the owner's connection is complete. */
  #outage: OpenOutage | undefined;
  /** How the owner's connection settles, as its last message says. */
  #settling: MessageHead['settling'];
  /** Whether the last event about the connection says that it's down. */
  #isDown = false;
  /** Where the next gap can begin: when the first connection opened, or the last gap ended. */
  #reportedTo = 0;
  /** When the current connection opened. */
  #openedAt = 0;
  // A client that resumes before the gap receives `opened` and the gap, so only the gap moves the position.
  #beforeGap: FeedPosition | undefined;

  constructor(feed: Feed, emit: EmitEvent<OwnerChanged>) {
    this.#feed = feed;
    this.#emit = emit;
  }

  /** Returns whether it ignores a report. */
  receive(message: FeedMessage, now: number): boolean {
    if (message.kind === 'report') return !this.#receiveReport(message, now);
    if (message.gen > this.#gen) this.#receiveNext(message, now);
    else if (message.gen === this.#gen && message.owner === this.#owner) {
      this.#heardAt = now;
      this.#receiveCurrent(message, now);
      if (this.#hasEnded) this.#release(now);
    }
    return false;
  }

  /** Whether a publisher of this replica sends next what this follower emits next. */
  expects({ place }: Publisher): boolean {
    return place.sequence === this.#sequence && this.follows(place.gen, place.owner) && !this.#isAway;
  }

  /** Emits the expected frame. @param at - when the owner received it, as its messages say */
  next(frame: Frame, at: number): void {
    this.#lastAt = at + this.#shift;
    this.#emitFrame(frameAt(frame, this.#lastAt, this.#connection));
  }

  /** Whether it emits this owner's frames, with no earlier ones left. */
  follows(gen: number, owner: string): boolean {
    return this.#gen === gen && this.#owner === owner;
  }

  tick(now: number): void {
    if (now >= (this.nextTick ?? Infinity)) this.#release(now);
  }

  get nextTick(): number | undefined {
    return this.#hold && this.#hold.since + timing.holdMs;
  }

  /** The owner of the newest messages, emitted or waiting. */
  get followed(): Ownership {
    return this.#hold?.messages.at(-1) ?? this.emitted;
  }

  /** The owner of the messages that it emits. */
  get emitted(): Ownership {
    return { gen: this.#gen, owner: this.#owner };
  }

  /** Whether it has emitted `opened`. */
  get hasOpened(): boolean {
    return this.#openedAt > 0;
  }

  get position(): FeedPosition | undefined {
    return this.#beforeGap ?? this.#positionNow();
  }

  /** Handles missing messages of the owner. @param why - `away` if the engine is unreachable, `behind` otherwise */
  away(why: 'away' | 'behind'): void {
    this.#wasCutOff ||= why === 'away';
    if (this.#gen === 0 || this.#isAway) return;
    this.#isAway = why;
    // Earlier messages can still arrive, so the time of the stream stays where it is.
    const failure = createFailure(clusterMeanings[why], { stage: 'stream', endedAt: this.#lastAt });
    this.#beginOutage(this.#lastAt, failure, this.#frames);
    this.#emitDown({ type: 'disconnected', at: this.#lastAt, failure });
  }

  /** Returns the stream's current time, in epoch ms; `undefined` before the first message. */
  timeAt(now: number): number | undefined {
    return this.#gen === 0 ? undefined : this.#lead.ms + now;
  }

  #positionNow(): FeedPosition | undefined {
    return this.#gen === 0 ? undefined : { run: this.#run, sequence: this.#sequence, frames: this.#frames };
  }

  #receiveNext(message: FeedMessage, now: number): void {
    const newest = this.#hold?.messages.at(-1);
    // The previous owner keeps the connection until the new one's is open.
    const isOpen = message.kind === 'batch' || message.phase === 'open';
    if (message.kind === 'end' || (!isOpen && (message.kind === 'beat' || newest === undefined))) return;
    // Its `opened` follows at once, or its gap.
    if (message.kind === 'beat' && message.sequence === 0 && message.settling !== undefined) return;
    if (newest && message.gen < newest.gen) return;
    if (newest && message.gen > newest.gen) this.#release(now);
    const hold = (this.#hold ??= { messages: [], bytes: 0, since: now });
    hold.messages.push(message);
    hold.bytes += message.kind === 'batch' ? message.bytes : 0;
    if (!this.#isOpen(now) || hold.messages.length > maxHeld || hold.bytes > maxHeldBytes) this.#release(now);
  }

  /** Whether messages of the current owner can be under way. */
  #isOpen(now: number): boolean {
    return this.#gen !== 0 && !this.#hasEnded && now - this.#heardAt <= timing.silentMs;
  }

  #release(now: number): void {
    if (this.#hold === undefined) return;
    const { messages, since } = this.#hold;
    this.#heardAt = now;
    this.#hold = undefined;
    for (const message of messages) {
      if (message.gen > this.#gen) this.#begin(message, since);
      // If the store has lost data, two owners can use the same number.
      if (message.owner === this.#owner) this.#receiveCurrent(message, now);
    }
  }

  #begin(message: FeedMessage, now: number): void {
    const { epoch, gen, owner, sequence, frames, at: sentAt, settling } = message;
    const isFirst = this.#gen === 0;
    const from = this.#lastAt;
    this.#shift = this.#shiftOf(sentAt, now);
    const at = sentAt + this.#shift;
    if (this.#shift <= 0) this.#lead = { ms: at - now, at: now };
    this.#beforeGap ??= this.#positionNow();
    [this.#gen, this.#owner, this.#run] = [gen, owner, runOf(epoch, gen, owner)];
    [this.#frames, this.#lastAt, this.#settling] = [frames, at, settling];
    // This emits the `opened`.
    this.#sequence = sequence + (isEvent(message, 'opened') ? 1 : 0);
    [this.#isAway, this.#wasCutOff, this.#hasEnded] = [undefined, false, false];
    if (isFirst) {
      this.#reportedTo = at;
      return this.#emitOpened(at, settling);
    }
    const failure = createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: from });
    this.#outage = { from: this.#outage?.from ?? from, failure };
    this.#emit({ type: 'owner-changed', at, owner, generation: gen });
    this.#emitOpened(at, settling);
    if (settling === undefined) this.#endOutage(at);
  }

  #receiveCurrent(message: FeedMessage, now: number): void {
    // Reports of another owner may have been later.
    if (this.#isAway) this.#shift = Math.max(this.#shift, this.#lastAt - message.at);
    // A gap can end before it's published.
    if (!isEvent(message, 'gap')) this.#noteTime(message.at, now);
    // An owner's messages come back to it.
    if (message.sequence < this.#sequence) return;
    const hasMissed = this.#isAway !== undefined || message.sequence > this.#sequence;
    if (hasMissed && isWithoutConnection(message)) return this.away('behind');
    if (isQuiet(message) && !this.#provesTime(message, hasMissed)) {
      this.#hasEnded ||= message.kind === 'end';
      return;
    }
    const before = this.#lastAt;
    this.#lastAt = this.#timeOf(message);
    // The owner's clock was set back.
    if (this.#lastAt < before) this.#reportedTo = Math.min(this.#reportedTo, this.#lastAt);
    const frames = this.#frames;
    const wasComplete = this.#settling === undefined;
    if (hasMissed) this.#beforeGap ??= this.#positionNow();
    [this.#sequence, this.#frames, this.#settling] = [message.sequence, message.frames, message.settling];
    if (hasMissed) this.#receiveAfterLoss(message, before, frames);
    this.#emitItems(message);
    if (message.settling === undefined) this.#isFirst = false;
    // No event says that an owner was replaced.
    else if (wasComplete && this.#outage === undefined) this.#beginOutage(before, replacedAt(before), undefined);
  }

  /** An event can be older than a beat before it: a gap that ended when its connection opened. */
  #timeOf(message: FeedMessage): number {
    const at = message.at + this.#shift;
    const isLate = message.kind === 'event' && this.#lastAt - at <= timing.maxSkewMs;
    return isLate || isEvent(message, 'gap') ? Math.max(at, this.#lastAt) : at;
  }

  /**
   * Whether nothing of the stream is missing before the time of a beat, or of an `end`. An owner that was replaced sends
   * beats while it has no connection, and one before the `opened` of the next one. One that stood still may have been
   * replaced long before its `end`.
   */
  #provesTime({ kind, phase, settling, at }: FeedMessage, hasMissed: boolean): boolean {
    if (this.#isDown) return kind === 'beat';
    if (kind === 'end' && at + this.#shift - this.#lastAt > timing.silentMs) return false;
    return phase === 'open' && (hasMissed || settling === undefined || this.#settling !== undefined);
  }

  /**
   * Reports that messages before this one didn't arrive. While the connection settles, an outage goes on.
   *
   * @param frames - how many frames came before them
   */
  #receiveAfterLoss(message: FeedMessage, from: number, frames: number): void {
    const { settling } = message;
    const isKnown = this.#outage !== undefined;
    const failure = createFailure(clusterMeanings[this.#isAway ?? 'behind'], { stage: 'stream', endedAt: from });
    [this.#isAway, this.#wasCutOff] = [undefined, false];
    this.#beginOutage(from, failure, settling === undefined ? frames : undefined);
    if (isEvent(message, 'opened') || isEvent(message, 'disconnected')) return;
    if (settling !== undefined && !isKnown && !this.#isDown)
      this.#emitDown({ type: 'disconnected', at: from, failure });
    if (this.#isDown) this.#emitOpened(this.#lastAt, settling);
    if (settling === undefined) this.#endOutage(this.#lastAt);
  }

  /** Emits what an owner without a connection reports, unless the previous one is still connected. */
  #receiveReport({ gen, owner, at, event }: MessageHead & { readonly event: LifecycleEvent }, now: number): boolean {
    const name = `${owner} ${event.type} ${'at' in event ? event.at : event.to}`;
    if (gen <= this.#gen || this.#isOpen(now) || this.#hold || this.#reported.includes(name)) return false;
    this.#reported = event.type === 'disconnected' ? [name] : [...this.#reported, name];
    if (this.#gen !== 0) {
      this.#isAway = 'away';
      const failure = createFailure(clusterMeanings.away, { stage: 'stream', endedAt: this.#lastAt });
      this.#beginOutage(this.#lastAt, failure, this.#frames);
    }
    const later = this.#shiftOf(at, now);
    if (this.#gen === 0 && this.#shownAt === 0) this.#lead = { ms: at - now, at: now };
    this.#shownAt = this.#lastAt = at + later;
    if (event.type === 'disconnected') this.#isDown = true;
    this.#emit(shifted(event, later));
    return true;
  }

  #emitItems(message: FeedMessage): void {
    switch (message.kind) {
      case 'batch': {
        const frames = message.framesOf(this.#connection, this.#shift);
        for (const frame of frames) this.#emitFrame(frame);
        this.#lastAt = Math.max(this.#lastAt, frames.at(-1)?.receivedAt ?? 0);
        return;
      }
      case 'event':
        this.#sequence += 1;
        return this.#emitEvent(shifted(message.event, this.#shift));
      case 'beat':
        return this.#emit({ type: 'watermark', at: this.#lastAt });
      case 'end':
        this.#hasEnded = true;
        return;
      case 'report':
    }
  }

  #emitEvent(event: LifecycleEvent): void {
    if (event.type === 'disconnected') return this.#emitEnd(event);
    if (event.type === 'gap') return this.#emitGap(event);
    if (event.type !== 'opened') return this.#emit(event);
    // One that was replaced opens again without `disconnected`.
    this.#isFirst &&= this.#isDown;
    this.#emitOpened(Math.max(event.at, this.#lastAt), this.#settling);
  }

  #emitEnd(event: Disconnected): void {
    const { at, failure } = event;
    if (failure.stage === 'stream') {
      this.#isFirst = false;
      this.#beginOutage(Math.min(failure.endedAt, at), failure, undefined);
    }
    this.#emitDown(event);
  }

  #emitDown(event: Disconnected): void {
    this.#isDown = true;
    this.#emit(event);
  }

  /** The owner's gap says from when its connection is complete. Where it begins differs for each replica. */
  #emitGap(event: Gap): void {
    const outage = this.#outage;
    if (outage === undefined && this.#isFirst) return;
    const isReported = event.to <= this.#reportedTo;
    if (isReported && (outage === undefined || outage.isRest === true)) this.#outage = undefined;
    else if (outage === undefined) this.#emitGapFrom(event);
    else this.#endOutage(event.to);
  }

  #endOutage(to: number): void {
    const outage = this.#outage;
    if (outage === undefined) return;
    const { failure } = outage;
    this.#outage = typeof this.#settling === 'number' ? { from: to, failure, isRest: true } : undefined;
    this.#beforeGap = undefined;
    this.#emitGapFrom({ ...outage, to });
  }

  #beginOutage(from: number, failure: TradeFeedError, frames: number | undefined): void {
    const known = this.#outage;
    const before = known && frames !== undefined ? known.frames : frames;
    this.#outage = { from, failure, ...known, frames: before, isRest: undefined };
  }

  #emitGapFrom({ from, to, failure, frames }: OpenOutage & Pick<Gap, 'to'>): void {
    const gap = createGap(Math.max(from, this.#reportedTo), Math.max(to, this.#openedAt), failure);
    this.#reportedTo = gap.to;
    this.#emit(frames === undefined ? gap : { ...gap, missed: this.#frames - frames });
  }

  #emitFrame(frame: Frame): void {
    const outage = this.#outage;
    if (outage !== undefined && outage.isRest !== true) this.#endOutage(this.#lastAt);
    this.#sequence += 1;
    this.#frames += 1;
    this.#emit(frame);
  }

  /** @param settling - how the connection settles, in the owner's times */
  #emitOpened(at: number, settling: MessageHead['settling']): void {
    this.#connection += 1;
    this.#isDown = false;
    this.#openedAt = at;
    const known = settling !== 'auto' && { completeFrom: settling === undefined ? at : settling + this.#shift };
    this.#emit({ type: 'opened', at, feed: this.#feed, connection: this.#connection, ...known });
  }

  /** Adapts to a message of this generation. */
  #noteTime(at: number, now: number): void {
    // The first message was handled late, so a smaller shift is enough. Times still don't go back.
    if (this.#shift > 0) this.#shift = Math.max(0, this.#lastAt - at, Math.min(this.#shift, this.#lead.ms + now - at));
    // Clocks drift, so an old maximum counts less.
    this.#lead = { ms: Math.max(at + this.#shift - now, this.#lead.ms - (now - this.#lead.at) * maxDrift), at: now };
  }

  /** Returns what to add to a new owner's times, so that they're neither far ahead nor go back. */
  #shiftOf(at: number, now: number): number {
    if (this.#gen === 0 && this.#shownAt === 0) return 0;
    const aheadMs = at - (this.#lead.ms + now);
    const isFarAhead = aheadMs > timing.maxSkewMs && !this.#wasCutOff;
    return Math.max(isFarAhead ? -aheadMs : 0, this.#lastAt - at, this.#shownAt - at);
  }
}

const replacedAt = (endedAt: number): TradeFeedError =>
  createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced', endedAt });

const isEvent = (message: FeedMessage, type: LifecycleEvent['type']): boolean =>
  message.kind === 'event' && message.event.type === type;

const isQuiet = ({ kind }: FeedMessage): boolean => kind === 'beat' || kind === 'end';

/** Whether it's from an owner that is disconnected, as far as its messages say. */
const isWithoutConnection = ({ kind, phase }: FeedMessage): boolean =>
  phase !== 'open' && (kind === 'beat' || kind === 'event');
