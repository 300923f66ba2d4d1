import { type SchedulerAction, type SchedulerLike, Subject, Subscription } from 'rxjs';
import type { ClusterSettings } from '../../../src/cluster/cluster-options.js';
import {
  type Effect,
  Election,
  hasFeed,
  type Input,
  isServing,
  nextTick,
  type Ownership,
  ownerOf,
  type Owning,
  type Report,
  reportOf,
  roleOf,
} from '../../../src/cluster/election/election.js';
import { step } from '../../../src/cluster/election/step.js';
import { timingDefaults } from '../../../src/cluster/election/timing.js';
import type { EngineFaults, WatchedEngine } from '../../../src/cluster/engine-faults.js';
import { FeedChannel } from '../../../src/cluster/feed-channel.js';
import { stateBefore } from '../../../src/cluster/feed-run.js';
import { headOf, type FeedHead } from '../../../src/cluster/messages.js';
import { createLifecycle } from '../../../src/feed/lifecycle.js';
import type { FeedEvent, LifecycleEvent, OwnerChanged } from '../../../src/protocol/event.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { afterEvent, noFeed } from '../../../src/protocol/feed-state.js';
import { Frame } from '../../../src/protocol/frame.js';
import type { Place } from '../../../src/protocol/place.js';
import { liveSubject } from '../../../src/log/line-store.js';
import type { Chance } from '../../simulation/chance.js';
import type { Time } from '../../simulation/world.js';
import { type Conditions, delayUpTo, type SimulatedEngine } from './engine.js';
import { decodeAny, numbersIn, SimulatedLine } from './line.js';
import { numberOf, type Observer, payloadOf } from './observer.js';
import { type Process, runIn } from './process.js';
import type { Client, SimulatedService } from './service.js';

/** What all replicas of a run share. */
export interface World {
  readonly time: Time;
  readonly chance: Chance;
  readonly engine: SimulatedEngine<SimulatedReplica>;
  readonly service: SimulatedService;
  readonly observer: Observer;
  readonly deliveryDelayMs: 'auto' | number;
  readonly record: (text: string) => void;
  /** `isExact`: the store lost a claim, and no replica can notice it. */
  readonly onStopWritten: (isExact: boolean) => void;
  /** An owner's eviction isn't counted, because another replica has claimed at the same time. */
  readonly onUncounted: () => void;
  readonly onFailed: (replica: SimulatedReplica, isReplaced: boolean) => void;
}

type Write = Extract<Effect, { readonly type: 'write' }>;

const maxFrameBytes = 1_000;

/** A replica of the simulation: the real election and channel, with a simulated engine and feed. */
export class SimulatedReplica implements Process {
  readonly world: World;
  readonly id: string;
  readonly conditions: Conditions = { link: 'good', loss: 0, storeMs: 3, handshakeMs: 20, ticketMs: 20 };
  election: Election;
  isAlive = true;
  disturbedAt: number;
  readonly answers = new Map<string, number>();
  readonly #channel: FeedChannel;
  readonly #feed: SimulatedFeed;
  readonly #subjects = new Map<string, Subject<Uint8Array>>();
  /** The frames that its feed has received, and on which connection. */
  readonly #received = new Map<number, number>();
  #pausedAt: number | undefined;
  #suspendedMs = 0;
  /** The clocks of the replicas differ by up to a minute. */
  #wallShift: number;
  #inbox: (() => void)[] = [];
  /** When the tick that is scheduled runs. */
  #tickAt = Infinity;
  /** The last write whose result has arrived in time. */
  #lastWrite: { readonly revision: number; readonly at: number; readonly evictions: number } | undefined;
  /** The revision of its last write in the store. It reads that one if the result doesn't arrive. */
  #storedRevision: number | undefined;
  #answer: Report | undefined;

  /** @param hasBadKey - the service refuses its key */
  constructor(world: World, id: string, hasBadKey: boolean) {
    this.world = world;
    this.id = id;
    const { time, engine } = world;
    const settings = { replica: id, since: time.now(), source: 'market', canOwn: true, ...timingDefaults } as const;
    this.#wallShift = ((Number(id.slice(1)) * 37_717) % 120_000) - 60_000;
    this.disturbedAt = time.now();
    this.election = new Election(settings, engine.isUp());
    this.#feed = new SimulatedFeed(this, hasBadKey);
    this.#channel = runIn(this, () => this.#createChannel());
  }

  start(): void {
    this.world.engine.join(this);
    this.record('starts');
    this.run(() => this.input({ type: 'start' }));
  }

  #createChannel(): FeedChannel {
    const settings = { account: 'main', batchBytes: 1_024, sinceMs: 0, ...timingDefaults, feed: { maxFrameBytes } };
    return new FeedChannel('market', settings as ClusterSettings, {
      engine: this.#createEngine(),
      faults: { failed: () => undefined, worked: () => undefined, current: undefined } as unknown as EngineFaults,
      election: () => this.election,
      event: (event) => this.#emitted(event),
      show: () => undefined,
      counts: { fetched: 0, surplus: 0 },
      heard: (report) => this.input({ type: 'heard', report }),
      fenced: (gen) => this.input({ type: 'fenced', gen }),
      error: (error) => {
        throw error;
      },
    });
  }

  #createEngine(): WatchedEngine {
    const { engine, observer } = this.world;
    const { line } = engine;
    const publish = (subject: string, bytes: Uint8Array, arrive?: () => boolean): void => {
      this.#notePublished(headOf(bytes) as FeedHead, numbersIn(bytes));
      const message = decodeAny(bytes);
      if (message && message.kind !== 'end') observer.saysComplete(message.gen, message.complete);
      engine.publish(this, (to) => to.#subjects.get(subject)?.next(bytes), arrive);
    };
    const link = {
      isConnected: () => engine.isConnected(this),
      publish: (bytes: Uint8Array, arrive: () => boolean) =>
        publish(liveSubject({ kind: 'line', name: 'main' }), bytes, arrive),
      answer: (receive: () => void) => engine.answer(this, receive),
      call: <T>(access: () => T) => engine.call(this, access),
      wrong: (text: string) => this.world.observer.wrong(`${this.id} ${text}`),
    };
    return {
      publish,
      subscribe: (subject: string) => {
        const known = this.#subjects.get(subject) ?? new Subject();
        this.#subjects.set(subject, known);
        return known;
      },
      resubscribe: () => undefined,
      ...(line && { line: () => new SimulatedLine(line, link) }),
    } as unknown as WatchedEngine;
  }

  #emitted(event: FeedEvent | OwnerChanged): void {
    // Its own subscribers receive a frame before the engine does.
    if (event.type === 'frame' && this.#received.has(numberOf(event)))
      this.#notePublished(this.#channel.follower.emitted, [numberOf(event)]);
    this.world.observer.emitted(this.id, event);
  }

  #notePublished({ gen, owner }: Ownership, numbers: readonly number[]): void {
    for (const number of numbers) this.world.observer.published(owner, gen, number, this.#received.get(number));
  }

  get wall(): number {
    return this.world.time.now() + 1e12 + this.#wallShift;
  }

  get hasConnection(): boolean {
    return this.#feed.hasConnection;
  }

  /** The run whose frames it emits. An `end` of another owner, which its follower drops, doesn't change it. */
  get followed(): string {
    const { gen, owner } = this.#channel.follower.emitted;
    return `${gen} of ${owner}`;
  }

  /** How long no fault has disturbed it, in ms. */
  get undisturbedMs(): number {
    return this.world.time.now() - this.disturbedAt;
  }

  get isServing(): boolean {
    return isServing(this.election);
  }

  /** Where it is in the line. */
  get place(): Place | undefined {
    return this.#channel.follower.line;
  }

  get monotonic(): number {
    return this.world.time.now() - this.#suspendedMs;
  }

  record(text: string): void {
    this.world.record(`${this.id}: ${text}`);
  }

  /** Marks this replica as disturbed from now on. */
  disturb(forMs = 0): void {
    this.disturbedAt = Math.max(this.disturbedAt, this.world.time.now() + forMs);
    this.answers.clear();
  }

  /** Runs an action in this replica: now, or once it continues. */
  run(action: () => void): void {
    if (!this.isAlive) return;
    if (this.#pausedAt !== undefined) this.#inbox.push(action);
    else runIn(this, action);
  }

  later(delayMs: number, action: () => void): () => void {
    return this.world.time.after(delayMs, () => this.run(action));
  }

  input(each: Input): void {
    if (!this.isAlive || ['stopped', 'left'].includes(roleOf(this.election))) return;
    const [before, channel] = [this.election, this.#channel];
    const { call } = before;
    const isWritten = each.type === 'call' && each.result.type === 'written' && call?.id === each.id;
    if (isWritten) {
      const evictions = call.key?.evictions.length ?? 0;
      this.#lastWrite = { revision: each.result.revision, at: call.at, evictions };
    }
    const clock = { now: this.monotonic, wall: this.wall, random: this.world.chance.random() };
    const { state: next, effects } = step(before, each, { ...clock, followed: channel.follower.emitted });
    this.election = next;
    const [owned, own] = [ownerOf(before), ownerOf(next)];
    const isUncounted = next.evictions.length === 0 || next.state.name !== 'following';
    if (owned && hasEvictionToWrite(owned, this.#lastWrite?.evictions) && !own && !isWritten && isUncounted)
      this.world.onUncounted();
    if (next.state.name !== before.state.name)
      this.record(`${before.state.name} -> ${next.state.name} (generation ${own?.gen ?? next.gen})`);
    const report = reportOf(next);
    // An owner that has followed nobody only knows its own clock.
    if (report && channel.follower.line === undefined) this.world.observer.beganAlone(this.wall);
    channel.report(report, isServing(next), own?.changes.at(-1)?.cause === 'hand-over');
    for (const effect of effects) this.#perform(effect);
    this.#scheduleTick();
  }

  /** The engine is reachable, or isn't. */
  connectionChanged(isConnected: boolean): void {
    this.input({ type: 'engine', isConnected });
    this.#channel.connected(isConnected, !hasFeed(this.election));
  }

  answeredByStore(isGood: boolean): void {
    this.world.observer.read(this.id, isGood);
  }

  asked(question: Ownership, from: string): Report | undefined {
    this.input({ type: 'asked', question });
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer && !this.answers.has(from)) this.answers.set(from, this.world.time.now());
    return answer;
  }

  publishEvent(event: LifecycleEvent): void {
    this.#channel.event(event);
  }

  /** @param connection - its number */
  publishFrame(frame: Frame, connection: number): void {
    this.#received.set(numberOf(frame), connection);
    this.#channel.frame(frame);
  }

  pause(): void {
    this.#pausedAt ??= this.world.time.now();
  }

  /** Continues. After a suspend, the monotonic clock has stood still. */
  resume(wasSuspended: boolean): void {
    if (this.#pausedAt === undefined) return;
    if (wasSuspended) this.#suspendedMs += this.world.time.now() - this.#pausedAt;
    this.#pausedAt = undefined;
    this.world.observer.resumed();
    const waiting = this.#inbox;
    this.#inbox = [];
    // After a pause, timers can run before the sockets are read.
    if (this.world.chance.isTrue(0.5)) this.run(() => this.input({ type: 'tick' }));
    for (const action of waiting) this.run(action);
    this.#scheduleTick();
  }

  kill(): void {
    this.record('is killed');
    this.#feed.endAttempt();
    this.#leave();
  }

  jumpClock(ms: number): void {
    this.#wallShift += ms;
  }

  #leave(): void {
    this.isAlive = false;
    this.world.engine.leave(this);
  }

  // A little later, so that a rounding error can't make the tick too early.
  get #neededTick(): number {
    return nextTick(this.election) + this.#suspendedMs + 0.001;
  }

  // Most ticks are postponed before they're due. One that's too early schedules the next.
  #scheduleTick(): void {
    const { time } = this.world;
    const at = this.#neededTick;
    if (at >= this.#tickAt) return;
    this.#tickAt = at;
    time.after(at - time.now(), () => {
      if (this.#tickAt !== at) return;
      this.#tickAt = Infinity;
      this.run(() => this.#tick());
    });
  }

  #tick(): void {
    if (this.#neededTick > this.world.time.now()) return this.#scheduleTick();
    this.input({ type: 'tick' });
  }

  #perform(effect: Effect): void {
    const { engine, onFailed } = this.world;
    switch (effect.type) {
      case 'read':
        return engine.access(this, effect.id, (store) => store.read());
      case 'write':
        return this.#write(effect);
      case 'ask':
        return engine.ask(this, effect.id, effect.question);
      case 'answer':
        this.#answer = effect.report;
        return;
      case 'beat':
        return this.#channel.beat(effect.report);
      case 'presence':
        return engine.publish(this, (to) => to.input({ type: 'standby', presence: effect.presence }));
      case 'offer':
        this.record(`offers to ${effect.to}`);
        return engine.send(this, effect.to, effect.offer);
      case 'voided':
      case 'evicted':
      case 'stop-notice':
        return engine.publish(this, (to) => to.input(effect));
      case 'open':
        return this.#feed.open();
      case 'allow':
        return this.#feed.allow();
      case 'close':
        return this.#feed.close();
      case 'end':
        return this.#channel.end(effect.gen);
      case 'fail':
        this.record(`fails, ${effect.isReplaced ? 'connection replaced' : 'no candidate'}`);
        this.#channel.close();
        return onFailed(this, effect.isReplaced);
      case 'left':
        this.record('left');
        this.#channel.flush();
        return this.#leave();
    }
  }

  #write({ id, key, expected }: Write): void {
    const { gen, phase, credits } = key;
    this.record(`writes generation ${gen} ${phase}, expects revision ${expected}, ${credits.length} credits`);
    const sentAt = this.monotonic;
    this.world.engine.access(this, id, (store) => {
      const result = store.write(key, expected);
      // The store may have rolled back to just this owner's last write, and lost a newer claim, before its lease ended.
      const { revision, at = 0 } = this.#lastWrite ?? {};
      const isOwn = expected === revision || expected === this.#storedRevision;
      const isExact = store.highest() > gen && isOwn && sentAt - at < timingDefaults.leaseMs;
      if (phase === 'stopped' && result.type === 'written') this.world.onStopWritten(isExact);
      if (result.type === 'written') this.#storedRevision = result.revision;
      return result;
    });
  }
}

const hasEvictionToWrite = ({ name, evictions }: Owning, written = 0): boolean =>
  name === 'evicted' || (name === 'releasing' && evictions.length > written);

interface Attempt extends Client {
  state: 'ticket' | 'waiting' | 'sent' | 'open' | 'over';
  ticketUntil: number;
  sentIn: number | undefined;
  hasFrames: boolean;
  readonly number: number;
}

/** The timers of a replica: they wait while it's paused. */
const schedulerOf = (replica: SimulatedReplica): SchedulerLike => ({
  now: () => replica.wall,
  schedule(work, delayMs = 0, state) {
    const subscription = new Subscription();
    replica.later(delayMs, () => {
      if (!subscription.closed) work.call(subscription as SchedulerAction<typeof state>, state!);
    });
    return subscription;
  },
});

const ticketMs = 60_000;
const handshakeMs = 3_000;

/** The feed of a replica: its attempts, from the ticket to the end of the connection. */
class SimulatedFeed {
  readonly #replica: SimulatedReplica;
  readonly #hasBadKey: boolean;
  #attempt: Attempt | undefined;
  #attempts = 0;
  #isOpen = false;
  /** The gaps are those of the real library. */
  #state = noFeed;
  #lifecycle: ReturnType<typeof createLifecycle> | undefined;

  /** @param hasBadKey - the service refuses the key of this replica */
  constructor(replica: SimulatedReplica, hasBadKey: boolean) {
    this.#replica = replica;
    this.#hasBadKey = hasBadKey;
  }

  get hasConnection(): boolean {
    return this.#attempt?.state === 'open';
  }

  open(): void {
    const replica = this.#replica;
    this.#lifecycle?.end();
    this.#isOpen = true;
    const emit = (event: LifecycleEvent): void => {
      this.#state = afterEvent(this.#state, event, undefined);
      if (event.type !== 'stopped') replica.publishEvent(event);
    };
    this.#state = stateBefore(this.#state, replica.wall, true);
    this.#lifecycle = createLifecycle(emit, { before: this.#state, scheduler: schedulerOf(replica) });
    this.#startAttempt(0);
  }

  close(): void {
    this.#state = noFeed;
    this.#end();
  }

  #end(): void {
    this.#isOpen = false;
    this.#lifecycle?.end();
    this.endAttempt();
  }

  /** Sends the handshake that waits. */
  allow(): void {
    const { world, election, conditions } = this.#replica;
    const current = this.#attempt;
    if (current?.state !== 'waiting') return;
    current.state = 'sent';
    const at = this.#replica.wall;
    this.#lifecycle?.emit({ type: 'ticket-issued', at, feed: 'market', expiresAt: new Date(at).toISOString() });
    current.sentIn = ownerOf(election)?.gen;
    const delayMs = world.chance.between(0.2, conditions.handshakeMs);
    this.#replica.record(`sends a handshake, which arrives in ${delayMs.toFixed(0)} ms`);
    world.service.handshake(current, delayMs, current.ticketUntil);
    this.#replica.later(handshakeMs, () => {
      if (current === this.#attempt && current.state === 'sent') this.#lost(current, true);
    });
  }

  endAttempt(): void {
    const current = this.#attempt;
    if (current?.state === 'open' || current?.state === 'sent') this.#replica.world.service.leave(current);
    if (current) current.state = 'over';
    this.#attempt = undefined;
  }

  #startAttempt(delayMs: number): void {
    this.endAttempt();
    const replica = this.#replica;
    const { world, conditions } = replica;
    const current: Attempt = {
      ...{ name: replica.id, state: 'ticket', ticketUntil: 0, sentIn: undefined, hasFrames: false },
      number: (this.#attempts += 1),
      generation: () => current.sentIn,
      disturbedAt: () => (ownerOf(replica.election) && !replica.election.isLeaving ? replica.disturbedAt : Infinity),
      answeredAt: (other) => replica.answers.get(other) ?? Infinity,
      isThere: () => replica.isAlive && current.state !== 'over',
      hasLeft: () => !replica.isAlive || replica.election.isLeaving,
      opened: () => replica.run(() => this.#opened(current)),
      refused: () => replica.run(() => this.#lost(current)),
      closed: (code) => replica.run(() => (code === 4001 ? this.#replaced(current) : this.#lost(current))),
      frame: (number) => replica.run(() => this.#frame(current, number)),
    };
    this.#attempt = current;
    replica.later(delayMs + delayUpTo(world.chance, conditions.ticketMs), () => {
      if (current !== this.#attempt) return;
      if (this.#hasBadKey) return this.#failed(false);
      // A 403 concerns the account: the owner tries again with backoff.
      if (!world.service.isEntitled()) return this.#lost(current);
      current.state = 'waiting';
      current.ticketUntil = world.time.now() + ticketMs;
      replica.input({ type: 'handshake' });
    });
  }

  #opened(current: Attempt): void {
    const replica = this.#replica;
    if (current !== this.#attempt || current.state !== 'sent') return;
    current.state = 'open';
    replica.disturb();
    replica.input({ type: 'opened' });
    // The election may have closed this feed.
    if (current !== this.#attempt) return;
    const { deliveryDelayMs } = replica.world;
    const at = replica.wall;
    const known = deliveryDelayMs !== 'auto' && { completeFrom: at + deliveryDelayMs };
    this.#lifecycle?.emit({ type: 'opened', at, feed: 'market', connection: 1, ...known });
  }

  #lost(current: Attempt, isUnanswered = false): void {
    const replica = this.#replica;
    if (current !== this.#attempt || !this.#isOpen) return;
    replica.disturb();
    const wasOpen = current.state === 'open';
    this.#startAttempt(replica.world.chance.between(1, 500));
    replica.input({ type: 'disconnected', isUnanswered });
    const failure = wasOpen
      ? createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: replica.wall })
      : createTradeFeedError({ stage: 'ticket', status: 503 });
    this.#report({ type: 'disconnected', at: replica.wall, failure });
  }

  /** Emits an event, unless the election has closed this feed. */
  #report(event: LifecycleEvent): void {
    if (this.#isOpen) this.#lifecycle?.emit(event);
  }

  #replaced(current: Attempt): void {
    if (current !== this.#attempt) return;
    this.#replica.record('receives 4001');
    const at = this.#replica.wall;
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt: at });
    this.#lifecycle?.emit({ type: 'stopped', at, failure });
    this.#failed(true);
  }

  #failed(isReplaced: boolean): void {
    if (!isReplaced) this.#state = noFeed;
    this.#end();
    this.#replica.input({ type: 'failed', isReplaced });
  }

  #frame(current: Attempt, number: number): void {
    if (current !== this.#attempt || current.state !== 'open') return;
    if (!current.hasFrames) this.#lifecycle?.firstFrame(this.#replica.wall);
    current.hasFrames = true;
    this.#replica.publishFrame(new Frame('market', payloadOf(number), false, this.#replica.wall, 1), current.number);
  }
}
