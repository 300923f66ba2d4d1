import { Subscription } from 'rxjs';
import type { LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { clampMs } from '../protocol/validate.js';
import type { ClusterSettings } from './cluster-options.js';
import { type Subjects, subjectsOf } from './control.js';
import { areOfDifferentSources } from './election/cluster-key.js';
import type { Election, Report } from './election/election.js';
import { timing } from './election/timing.js';
import type { EngineFaults, WatchedEngine } from './engine-faults.js';
import { type EmitEvent, Follower } from './follower.js';
import { Decoder, encode, type FeedMessage, type PlainMessage } from './messages.js';
import { Outbox, Publisher } from './publisher.js';

interface FeedChannelParts {
  readonly engine: WatchedEngine;
  readonly faults: EngineFaults;
  readonly election: () => Election;
  readonly event: EmitEvent<OwnerChanged>;
  readonly heard: (report: Report) => void;
  readonly error: (error: unknown) => void;
}

/**
 * After this many leases without its own beats, an owner sends nothing but beats. Its connection may be silently dead,
 * and the engine's client would queue all frames.
 */
const silentLeases = 5;

/** A silence is timed in this many ticks: after a stall, the timer runs before the waiting messages are read. */
const silenceTicks = 4;

/**
 * Carries the frames and events of the cluster: sends this replica's while it owns, and emits the owner's, whoever that
 * is. Subscribes to the messages of owners when `report` is called.
 */
export class FeedChannel {
  readonly follower: Follower;
  readonly #leaseMs: number;
  readonly #parts: FeedChannelParts;
  readonly #subjects: Subjects;
  readonly #decoder: Decoder;
  readonly #publisher = new Publisher();
  readonly #outbox: Outbox;
  readonly #watchdog: NodeJS.Timeout;
  readonly #watchMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** For how many watchdog ticks no owner's message has arrived, this replica's included. */
  #quietTicks = 0;
  #source = { subject: '', subscription: new Subscription() };

  constructor(
    feed: Feed,
    { account, batchBytes, leaseMs, feed: { maxFrameBytes } }: ClusterSettings,
    parts: FeedChannelParts,
  ) {
    this.#leaseMs = leaseMs;
    this.#parts = parts;
    this.#subjects = subjectsOf(account);
    this.#decoder = new Decoder(feed, maxFrameBytes, () => parts.election().settings.replica);
    this.follower = new Follower(feed, parts.event);
    this.#outbox = new Outbox(
      this.#publisher,
      (bytes) => this.publish(this.#subjects.feed, bytes),
      () => Math.min(batchBytes, parts.engine.maxMessageBytes?.() ?? Infinity),
    );
    this.#watchMs = clampMs((leaseMs + timing.silenceMarginMs) / silenceTicks);
    this.#watchdog = setInterval(() => this.#watch(), this.#watchMs);
  }

  /**
   * Sets what the next messages report; `undefined` if this replica doesn't own. `isServing`: it owns, and no other
   * replica is known to.
   */
  report(report: Report | undefined, epoch: number, isServing: boolean): void {
    if (report !== undefined) {
      if (report.gen !== this.#publisher.place.gen) {
        this.#outbox.flush();
        this.#publisher.continue(this.follower.timeAt(performance.now()), Date.now());
      }
      this.#publisher.report(report, epoch);
    }
    // An owner that emits its own frames only needs the beats of other owners.
    const isSource = isServing && report !== undefined && this.follower.follows(report.gen, report.owner);
    this.#listen(isSource ? this.#subjects.beats : this.#subjects.feed);
  }

  frame(frame: Frame): void {
    if (!this.#isSilent) this.#outbox.frame(frame);
    // If its own beats don't come back, the follower must check that this replica's frames still arrive.
    if (!this.#isSource || !this.follower.expects(this.#publisher)) {
      this.#follow(this.#publisher.frame(frame));
      return;
    }
    this.#publisher.count();
    this.follower.next(frame, this.#publisher.timeOf(frame));
  }

  /** Returns whether this replica emits the event, too. */
  event(event: LifecycleEvent): boolean {
    return this.#send(this.#publisher.event(event));
  }

  beat(report: Report, epoch: number): void {
    this.#publisher.report(report, epoch);
    const beat = this.#publisher.beat(Date.now());
    this.#outbox.message(beat);
    if (report.phase !== 'open') for (const each of this.#publisher.reports()) this.#outbox.message(each);
    this.publish(this.#subjects.beats, encode(beat));
    if (report.phase !== 'free') this.#follow(beat);
  }

  end(gen: number): void {
    this.#send(this.#publisher.end(gen, Date.now()));
  }

  publish(subject: string, bytes: Uint8Array): void {
    const { engine, election } = this.#parts;
    if (election().isConnected) engine.publish(subject, bytes);
  }

  flush(): void {
    this.#outbox.flush();
  }

  close(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    this.#source.subscription.unsubscribe();
  }

  /** Whether this replica's frames are emitted directly, not through the engine. */
  get #isSource(): boolean {
    return this.#source.subject === this.#subjects.beats;
  }

  get #isSilent(): boolean {
    return this.#quietTicks * this.#watchMs > this.#leaseMs * silentLeases;
  }

  #send(message: PlainMessage | undefined): boolean {
    if (message === undefined) return false;
    if (!this.#isSilent) this.#outbox.message(message);
    return this.#follow(message);
  }

  #follow(message: FeedMessage): boolean {
    const isIgnored = this.follower.receive(message, performance.now());
    this.#schedule();
    return !isIgnored;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const at = this.follower.nextTick;
    // A subscriber can end the replica.
    if (at === undefined || this.#source.subscription.closed) return;
    const tick = (): void => {
      this.follower.tick(performance.now());
      this.#schedule();
    };
    this.#timer = setTimeout(tick, clampMs(Math.max(0, Math.ceil(at - performance.now()))));
  }

  #listen(subject: string): void {
    if (subject === this.#source.subject) return;
    const { engine, error } = this.#parts;
    const before = this.#source.subscription;
    const subscription = new Subscription();
    this.#source = { subject, subscription };
    subscription.add(engine.subscribe(subject).subscribe({ next: (bytes) => this.#receive(bytes), error }));
    before.unsubscribe();
  }

  #receive(bytes: Uint8Array): void {
    const { faults, election, heard } = this.#parts;
    if (this.#quietTicks >= silenceTicks) faults.worked('subscribe');
    this.#quietTicks = 0;
    const message = this.#decoder.decode(bytes);
    if (message === undefined) return;
    const isOther = areOfDifferentSources(election().settings.replica, message.owner);
    if (message.phase !== 'free' && !isOther) this.#follow(message);
    if (message.kind === 'beat') heard(message);
  }

  /** Counts how long an expected message is overdue. While it lasts, reports it and renews the subscriptions. */
  #watch(): void {
    const { engine, faults, election } = this.#parts;
    const { isConnected, state } = election();
    const isExpected = isConnected && !['left', 'stopped', 'evicted'].includes(state.name);
    this.#quietTicks = isExpected ? this.#quietTicks + 1 : 0;
    if (this.#quietTicks === 0 || this.#quietTicks % silenceTicks !== 0) return;
    if (!this.#isSource) this.follower.away('behind');
    engine.resubscribe();
    // Another fault explains why there's no owner.
    if ((faults.current?.operation ?? 'subscribe') !== 'subscribe') return;
    const forMs = this.#quietTicks * this.#watchMs;
    faults.failed(
      'subscribe',
      new Error(`no message of an owner has arrived for ${Math.round(forMs / 1_000)} s`),
      forMs,
    );
  }
}
