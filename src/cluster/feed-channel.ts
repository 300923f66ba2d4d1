import { interval, Subscription } from 'rxjs';
import type { LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { clampMs } from '../protocol/validate.js';
import type { ClusterSettings } from './cluster-options.js';
import { LineReader, type Origin } from '../log/line-reader.js';
import type { LineExtent, LineStore } from '../log/line-store.js';
import { LineWriter } from '../log/line-writer.js';
import { type Subjects, subjectsOf } from './control.js';
import { areOfDifferentSources } from './election/cluster-key.js';
import type { Election, Report } from './election/election.js';
import { timing } from './election/timing.js';
import type { EngineFaults, WatchedEngine } from './engine-faults.js';
import { type EmitEvent, Follower, type LineCounts } from './follower.js';
import { Decoder, encode, type FeedMessage, headOf, type FeedHead, type PlainMessage } from './messages.js';
import { notBegun, Outbox, Publisher } from './publisher.js';

interface FeedChannelParts {
  readonly engine: WatchedEngine;
  readonly faults: EngineFaults;
  readonly election: () => Election;
  readonly event: EmitEvent<OwnerChanged>;
  /** Shows an event that this replica doesn't emit. */
  readonly show: (event: LifecycleEvent) => void;
  readonly heard: (report: Report) => void;
  /** The store has a later generation of the line than the one that this replica sends. */
  readonly fenced: (gen: number) => void;
  readonly error: (error: unknown) => void;
  readonly counts: LineCounts;
}

/**
 * After this many leases without its own beats, an owner sends nothing but beats, until its store answers. Its connection
 * may be silently dead, and the engine's client would queue all frames.
 */
const silentLeases = 5;

/** Between two questions what the store holds, in ms. */
const extentMs = 5_000;

/** A silence is timed in this many ticks: after a stall, the timer runs before the waiting messages are read. */
const silenceTicks = 4;

/**
 * Carries the frames and events of the cluster: sends this replica's while it owns, and emits the owner's, whoever that
 * is. Subscribes to the messages of owners when `report` is called.
 */
export class FeedChannel {
  readonly follower: Follower;
  /** What the store holds; `undefined` if that isn't known. */
  extent: LineExtent | undefined;
  readonly #leaseMs: number;
  readonly #parts: FeedChannelParts;
  readonly #subjects: Subjects;
  readonly #decoder: Decoder;
  readonly #publisher = new Publisher();
  readonly #outbox: Outbox;
  readonly #watchdog: NodeJS.Timeout;
  readonly #watchMs: number;
  /** Where the owner's messages are kept for a while; `undefined` if the engine has no store. */
  readonly #store: LineStore | undefined;
  readonly #reader: LineReader<FeedMessage>;
  readonly #others = new Subscription();
  #writer: LineWriter | undefined;
  /** Whether this owner's generation is about to begin. */
  #isBeginning = false;
  #timer: NodeJS.Timeout | undefined;
  /** For how many watchdog ticks no owner's message has arrived, this replica's included. */
  #quietTicks = 0;
  /** What it listens to. `isOwn`: this replica emits its own frames, and only needs the beats of other owners. */
  #source: { readonly isOwn: boolean; readonly subscription: Subscription } | undefined;

  constructor(
    feed: Feed,
    { account, batchBytes, leaseMs, sinceMs, line, feed: { maxFrameBytes } }: ClusterSettings,
    parts: FeedChannelParts,
  ) {
    this.#leaseMs = leaseMs;
    this.#parts = parts;
    this.#subjects = subjectsOf(account);
    this.#decoder = new Decoder(feed, maxFrameBytes, () => parts.election().settings.replica);
    this.follower = new Follower(feed, parts.event, parts.counts);
    this.#store = parts.engine.line?.({ ...line, kind: 'line', name: account, headOf });
    // The store has messages of earlier runs of this process, too.
    const stored = new Decoder(feed, maxFrameBytes, () => '');
    this.#reader = new LineReader({
      ...{ store: this.#store, sinceMs },
      decode: (bytes) => stored.decode(bytes),
      place: () => this.follower.line,
      receive: (message, origin) => this.#follow(message, origin),
      join: (message) => this.follower.join(message),
      refused: (error) => this.#storeRefused(error),
    });
    if (this.#store) {
      this.#others.add(this.#store.stored$.subscribe((stored) => this.#writer?.stored(stored)));
      this.#others.add(interval(extentMs).subscribe(() => void this.#askExtent(parts.election().isConnected)));
    }
    this.#outbox = new Outbox(
      this.#publisher,
      (bytes, head) => this.#append(head, bytes),
      () => Math.min(batchBytes, this.#maxBytes()),
    );
    this.#watchMs = clampMs((leaseMs + timing.silenceMarginMs) / silenceTicks);
    this.#watchdog = setInterval(() => this.#watch(), this.#watchMs);
  }

  /**
   * Sets what the next messages report; `undefined` if this replica doesn't own. `isServing`: it owns, and no other
   * replica is known to. `isOffered`: the previous owner has offered the ownership.
   */
  report(report: Report | undefined, isServing: boolean, isOffered: boolean): void {
    if (report !== undefined) {
      if (report.gen !== this.#publisher.place.gen) this.#outbox.flush();
      this.#publisher.report(report, performance.now(), isOffered);
    }
    // An owner that emits its own frames only needs the beats of other owners.
    const isSource = isServing && report !== undefined && this.follower.follows(report.gen, report.owner);
    this.#listen(isSource);
    this.#begin();
  }

  frame(frame: Frame): void {
    if (this.#publisher.hold(frame)) return this.#begin();
    this.#outbox.frame(frame);
    // If its own beats don't come back, the follower must check that this replica's frames still arrive.
    if (!this.#isSource || !this.follower.expects(this.#publisher))
      return this.follower.receive(this.#publisher.frame(frame), performance.now());
    const at = this.#publisher.timeOf(frame);
    this.#publisher.count(at);
    this.follower.next(frame, at);
  }

  /** Returns whether this replica emits the event, too. */
  event(event: LifecycleEvent): boolean {
    if (!this.#publisher.accepts(event)) return false;
    if (!this.#publisher.hold(event)) this.#send(this.#publisher.event(event));
    return true;
  }

  beat(report: Report): void {
    this.#publisher.report(report, performance.now(), false);
    this.#outbox.flush();
    const beat = this.#publisher.beat(Date.now());
    const bytes = encode(beat);
    // A store keeps all that comes on the subject of the feed. Without one, a beat comes after the messages before it.
    if (this.#store === undefined) this.publish(this.#subjects.feed, bytes);
    this.publish(this.#subjects.beats, bytes);
    if (report.phase !== 'free') this.follower.receive(beat, performance.now());
  }

  end(gen: number): void {
    if (gen === this.#publisher.place.gen) {
      // What has waited is published before the end. Otherwise the next owner would wait for an end that never comes.
      if (this.#publisher.hasOpened) this.#begin('leaving');
      // The previous owner may still be connected, so this generation has no place in the line.
      for (const each of this.#publisher.drop()) if (each.type !== 'frame') this.#parts.show(each);
    }
    const end = this.#publisher.end(gen, Date.now());
    if (end) this.#send(end);
    this.#writer?.close();
    this.#writer = undefined;
  }

  publish(subject: string, bytes: Uint8Array): void {
    const { engine, election } = this.#parts;
    if (election().isConnected) engine.publish(subject, bytes);
  }

  flush(): void {
    this.#outbox.flush();
  }

  /** The engine is reachable, or isn't. @param isFollowing - whether this replica has no connection to the service */
  connected(isConnected: boolean, isFollowing: boolean): void {
    void this.#askExtent(isConnected);
    this.#reader.connected(isConnected);
    if (isConnected) this.#writer?.retry();
    if (isConnected && isFollowing && this.follower.line) void this.#reader.catchUp();
    if (!isConnected && isFollowing && this.#store === undefined) this.follower.away('away');
  }

  close(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    this.#source?.subscription.unsubscribe();
    this.#others.unsubscribe();
    this.#reader.close();
    this.#writer?.close();
  }

  /** Whether this replica's frames are emitted directly, not through the engine. */
  get #isSource(): boolean {
    return this.#source?.isOwn === true;
  }

  get #isSilent(): boolean {
    return this.#quietTicks * this.#watchMs > this.#leaseMs * silentLeases;
  }

  #maxBytes(): number {
    return this.#parts.engine.maxMessageBytes?.() ?? Infinity;
  }

  #send(message: PlainMessage): void {
    this.#outbox.message(message);
    this.follower.receive(message, performance.now());
  }

  #follow(message: FeedMessage, origin: Origin): void {
    this.follower.receive(message, performance.now(), origin);
    this.#begin();
  }

  #append(head: FeedHead, bytes: Uint8Array): void {
    if (this.#writer) this.#writer.append(head, bytes, this.#isSilent);
    else if (!this.#isSilent) this.publish(this.#subjects.feed, bytes);
  }

  async #askExtent(isConnected: boolean): Promise<void> {
    try {
      this.extent = isConnected ? await this.#store?.extent() : undefined;
    } catch (error) {
      this.extent = undefined;
      this.#storeRefused(error);
    }
  }

  #storeRefused(error: unknown): void {
    if (error === undefined) this.#parts.faults.worked('store');
    else this.#parts.faults.failed('store', error);
  }

  /** Begins this owner's generation in the line once the previous one has ended, and publishes what has waited. */
  #begin(when: 'due' | 'caught-up' | 'leaving' = 'due'): void {
    clearTimeout(this.#timer);
    if (this.#isBeginning && when !== 'leaving') return;
    const at = this.#publisher.beginsAt(this.follower, this.#leaseMs);
    // A subscriber can end the replica.
    if (at === undefined || this.#source?.subscription.closed) return;
    const waitMs = Math.ceil(at - performance.now());
    // After it has caught up, too: the previous owner may have been heard meanwhile.
    if (waitMs > 0 && when !== 'leaving') this.#timer = setTimeout(() => this.#begin(), clampMs(waitMs));
    else if (this.#store && when === 'due') void this.#catchUp();
    else this.#beginNow();
  }

  /** The line may be longer than what has arrived here. */
  async #catchUp(): Promise<void> {
    this.#isBeginning = true;
    await this.#reader.finish();
    this.#isBeginning = false;
    this.#begin('caught-up');
  }

  #beginNow(): void {
    const store = this.#store;
    this.#writer?.close();
    const { fenced } = this.#parts;
    const refused = (error: unknown): void => this.#storeRefused(error);
    this.#writer = store && new LineWriter(store, { refused, fenced, maxBytes: () => this.#maxBytes() });
    const now = performance.now();
    for (const each of this.#publisher.begin(this.follower, this.follower.timeAt(now), Date.now())) {
      if (each.type === 'frame') this.frame(each);
      else this.#send(this.#publisher.event(each));
    }
  }

  #listen(isOwn: boolean): void {
    if (isOwn === this.#source?.isOwn) return;
    const { engine, error } = this.#parts;
    const { feed, beats } = this.#subjects;
    const before = this.#source?.subscription;
    const subscription = new Subscription();
    this.#source = { isOwn, subscription };
    for (const subject of isOwn ? [beats] : this.#store ? [feed, beats] : [feed])
      subscription.add(engine.subscribe(subject).subscribe({ next: (bytes) => this.#receive(bytes), error }));
    before?.unsubscribe();
  }

  #receive(bytes: Uint8Array): void {
    const { faults, election, heard } = this.#parts;
    if (this.#quietTicks >= silenceTicks) faults.worked('subscribe');
    this.#quietTicks = 0;
    const message = this.#decoder.decode(bytes);
    if (message === undefined) return;
    const isOther = areOfDifferentSources(election().settings.replica, message.owner);
    if (message.phase !== 'free' && message.line !== notBegun && !isOther)
      this.#reader.receive(message, bytes.byteLength);
    if (message.kind === 'beat') heard(message);
  }

  /** Counts how long an expected message is overdue. While it lasts, reports it and renews the subscriptions. */
  #watch(): void {
    const { engine, faults, election } = this.#parts;
    const { isConnected, state, precedenceUntil } = election();
    // What was missed is fetched, so a short outage of the engine is none of the feed.
    const isFetching = this.#store !== undefined && !this.#isSource;
    const isExpected = (isConnected || isFetching) && !['left', 'stopped', 'evicted'].includes(state.name);
    this.#quietTicks = isExpected ? this.#quietTicks + 1 : 0;
    // The owner may have gone before its last messages arrived.
    const isFollowing = this.#writer === undefined && !this.#isBeginning && this.follower.line !== undefined;
    if (this.#quietTicks > 1 && isConnected && isFollowing) void this.#reader.catchUp();
    if (this.#quietTicks === 0 || this.#quietTicks % silenceTicks !== 0) return;
    if (!this.#isSource) this.follower.away(isConnected ? 'behind' : 'away');
    if (!isConnected) return;
    engine.resubscribe();
    // Another fault explains why there's no owner, or it's about to reconnect, too.
    if (performance.now() < precedenceUntil || (faults.current?.operation ?? 'subscribe') !== 'subscribe') return;
    const forMs = this.#quietTicks * this.#watchMs;
    faults.failed(
      'subscribe',
      new Error(`no message of an owner has arrived for ${Math.round(forMs / 1_000)} s`),
      forMs,
    );
  }
}
