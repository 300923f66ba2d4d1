import type { ClusterEvent, FeedEvent, LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import type { Meaning } from '../protocol/failures/meanings.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { gapOfMissed } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import { type Frame, frameAt } from '../protocol/frame.js';
import { type FeedPosition, type PositionedFeed, runOf } from '../protocol/position.js';
import type { Ownership } from './election/election.js';
import { timing } from './election/timing.js';
import type { FeedMessage, MessageHead } from './messages.js';
import { type Publisher, shifted } from './publisher.js';

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
  /** The time of the stream's last item, and of another owner's last report. */
  #lastAt = 0;
  #shownAt = 0;
  /** Added to this owner's times. */
  #shift = 0;
  /**
   * How far the stream is ahead of the monotonic clock: the most that any message has shown, since others were late.
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
    this.#emit({ type: 'disconnected', at: this.#lastAt, failure });
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

  #begin({ epoch, gen, owner, sequence, frames, at: sentAt }: FeedMessage, now: number): void {
    const isFirst = this.#gen === 0;
    const from = this.#lastAt;
    this.#shift = this.#shiftOf(sentAt, now);
    const at = sentAt + this.#shift;
    if (this.#shift <= 0) this.#lead = { ms: at - now, at: now };
    this.#beforeGap = this.#positionNow();
    [this.#gen, this.#owner, this.#run] = [gen, owner, runOf(epoch, gen, owner)];
    [this.#sequence, this.#frames, this.#lastAt] = [sequence, frames, at];
    [this.#isAway, this.#wasCutOff, this.#hasEnded] = [undefined, false, false];
    if (!isFirst) this.#emit({ type: 'owner-changed', at, owner, generation: gen });
    this.#emitOpened(at);
    if (!isFirst) this.#emitGap(from, at, undefined, clusterMeanings.ownerChanged);
  }

  #receiveCurrent(message: FeedMessage, now: number): void {
    this.#noteTime(message.at, now);
    // An owner's messages come back to it.
    if (message.sequence < this.#sequence) return;
    const missed = message.frames - this.#frames;
    const hasMissed = message.sequence > this.#sequence;
    const [away, from] = [this.#isAway, this.#lastAt];
    const at = message.at + this.#shift;
    if (away) this.#emitOpened(at);
    [this.#isAway, this.#wasCutOff, this.#lastAt] = [undefined, false, at];
    [this.#sequence, this.#frames] = [message.sequence, message.frames];
    if (away || hasMissed) this.#emitGap(from, at, missed, clusterMeanings[away ?? 'behind']);
    this.#emitItems(message);
  }

  /** Emits what an owner without a connection reports, unless the previous one is still connected. */
  #receiveReport({ gen, owner, at, event }: MessageHead & { readonly event: LifecycleEvent }, now: number): boolean {
    const name = `${owner} ${event.type} ${'at' in event ? event.at : event.to}`;
    if (gen <= this.#gen || this.#isOpen(now) || this.#hold || this.#reported.includes(name)) return false;
    this.#reported = event.type === 'disconnected' ? [name] : [...this.#reported, name];
    if (this.#gen !== 0) this.#isAway = 'away';
    const later = this.#shiftOf(at, now);
    this.#shownAt = at + later;
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
        // `begin` has emitted the first `opened` of a generation.
        if (message.sequence === 0 && message.event.type === 'opened') return;
        if (message.event.type === 'opened') this.#emitOpened(message.event.at + this.#shift);
        else this.#emit(shifted(message.event, this.#shift));
        return;
      case 'beat':
        return this.#emit({ type: 'watermark', at: message.at + this.#shift });
      case 'end':
        this.#hasEnded = true;
        return;
      case 'report':
    }
  }

  #emitFrame(frame: Frame): void {
    this.#sequence += 1;
    this.#frames += 1;
    this.#emit(frame);
  }

  #emitOpened(at: number): void {
    this.#connection += 1;
    this.#emit({ type: 'opened', at, feed: this.#feed, connection: this.#connection });
  }

  #emitGap(from: number, to: number, missed: number | undefined, meaning: Meaning): void {
    this.#beforeGap = undefined;
    this.#emit(gapOfMissed({ from, to, frames: missed }, meaning));
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
    if (this.#gen === 0) return 0;
    const aheadMs = at - (this.#lead.ms + now);
    const isFarAhead = aheadMs > timing.maxSkewMs && !this.#wasCutOff;
    return Math.max(isFarAhead ? -aheadMs : 0, this.#lastAt - at, this.#shownAt - at);
  }
}
