import {
  type Clock,
  createElection,
  type Effect,
  type Election,
  type Input,
  nextTick,
  type Own,
  type Report,
} from '../../../src/cluster/election/election.js';
import { isServing, step } from '../../../src/cluster/election/step.js';
import { createFollower } from '../../../src/cluster/follower/follower.js';
import type { FeedMessage } from '../../../src/cluster/messages/feed-message.js';
import { createPublisher } from '../../../src/cluster/messages/publisher.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { Frame } from '../../../src/protocol/frame.js';
import type { Chance } from './chance.js';
import type { SimulatedEngine } from './engine.js';
import { delayUpTo, goodConditions, handshakeDelay } from './network.js';
import type { Observer } from './observer.js';
import type { Schedule } from './schedule.js';
import type { Client, SimulatedService } from './service.js';
import type { SimulatedReplica } from './simulated-replica.js';

/** What all replicas of a run share. */
export interface World {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly engine: SimulatedEngine;
  readonly service: SimulatedService;
  readonly observer: Observer;
  readonly record: (text: string) => void;
  /** `isExact`: the store has lost a claim, and no replica can notice it. */
  readonly onStopWritten: (isExact: boolean) => void;
  /** The eviction of an owner is not counted, because another replica has claimed at the same time. */
  readonly onUncounted: () => void;
  readonly onFailed: (replica: SimulatedReplica, isReplaced: boolean) => void;
}

interface Attempt extends Client {
  state: 'ticket' | 'waiting' | 'sent' | 'open' | 'over';
  ticketUntil: number;
  sentIn: number | undefined;
}

const ticketMs = 60_000;
const handshakeMs = 3_000;
const leaseMs = 2_000;
const payload = Buffer.alloc(0);

/** Starts a replica. `hasBadKey`: the service refuses its key. */
export const startReplica = (world: World, id: string, canOwn: boolean, hasBadKey: boolean): SimulatedReplica => {
  const { schedule, chance, engine, service, observer, record } = world;
  const conditions = goodConditions();
  const publisher = createPublisher();
  const follower = createFollower('market', (event) => observer.emitted(id, event));
  let state = createElection(
    {
      ...{ replica: id, since: schedule.now(), feed: 'market', canOwn },
      ...{ leaseMs, renewMs: 500, marginMs: 200, suspectMs: 600, handOverMs: 5_000 },
    },
    engine.isUp(),
  );
  let isAlive = true;
  let pausedAt: number | undefined;
  let suspendedMs = 0;
  let wallShift = 0;
  let inbox: (() => void)[] = [];
  let attempt: Attempt | undefined;
  let isFeedOpen = false;
  /** When the tick that is scheduled runs. */
  let tickAt = Infinity;
  let disturbedAt = schedule.now();
  const answers = new Map<string, number>();
  /** The last write whose result has arrived in time. */
  let lastWrite: { readonly revision: number; readonly at: number; readonly evictions: number } | undefined;
  let answer: Report | undefined;

  const monotonic = (): number => schedule.now() - suspendedMs;

  const clock = (): Clock => ({
    now: monotonic(),
    wall: schedule.now() + 1e12 + wallShift,
    random: chance.random(),
    followed: follower.generation,
  });

  const disturb = (forMs = 0): void => {
    disturbedAt = Math.max(disturbedAt, schedule.now() + forMs);
    answers.clear();
  };

  const run = (action: () => void): void => {
    if (!isAlive) return;
    if (pausedAt !== undefined) inbox.push(action);
    else action();
  };

  const later = (delayMs: number, action: () => void): void => schedule.after(delayMs, () => run(action));

  const input = (each: Input): void => {
    if (!isAlive || state.role === 'stopped' || state.role === 'left') return;
    const before = state;
    const isWritten = each.type === 'call' && each.result.type === 'written' && before.call?.id === each.id;
    if (isWritten)
      lastWrite = {
        ...{ revision: each.result.revision, at: before.call.sentAt },
        evictions: before.call.key?.evictions.length ?? 0,
      };
    const { state: next, effects } = step(before, each, clock());
    state = next;
    const isUncounted = next.evictions.length === 0 || next.role !== 'following';
    if (before.own && hasEvictionToWrite(before.own, lastWrite?.evictions) && !next.own && !isWritten && isUncounted)
      world.onUncounted();
    if (next.role !== before.role)
      record(`${id}: ${before.role} -> ${next.role} (generation ${next.own?.gen ?? next.gen})`);
    if (next.own) publisher.report({ ...reportOf(next), revision: next.own.revision ?? 0 }, next.own.epoch);
    for (const effect of effects) perform(effect);
    scheduleTick();
  };

  const reportOf = ({ own }: Election): Report => ({
    gen: own?.gen ?? 0,
    owner: id,
    phase: own?.phase ?? 'free',
    revision: own?.revision ?? 0,
  });

  // A little later, because a rounding error must not make the tick too early.
  const neededTick = (): number => Math.min(nextTick(state), follower.nextTick ?? Infinity) + suspendedMs + 0.001;

  // Most ticks are put off before they are due. One that is too early schedules the next one.
  const scheduleTick = (): void => {
    const at = neededTick();
    if (at >= tickAt) return;
    tickAt = at;
    schedule.after(at - schedule.now(), () => {
      if (tickAt !== at) return;
      tickAt = Infinity;
      run(tick);
    });
  };

  const tick = (): void => {
    if (neededTick() > schedule.now()) return scheduleTick();
    follower.tick(monotonic());
    input({ type: 'tick' });
  };

  const publish = (message: FeedMessage | undefined): void => {
    if (message === undefined) return;
    if (message.kind === 'batch') observer.published(`${message.gen} of ${id}`, message.batch[0]!.receivedAt);
    if (state.isConnected) engine.publish(self, 'feed', copyOf(message));
    follower.receive(message, monotonic());
  };

  const perform = (effect: Effect): void => {
    switch (effect.type) {
      case 'read':
        return engine.access(self, effect.id, (store) => store.read());
      case 'write': {
        record(
          `${id}: writes generation ${effect.key.gen} ${effect.key.phase}, expects revision ${effect.expected}, ${effect.key.credits.length} credits`,
        );
        const sentAt = monotonic();
        return engine.access(self, effect.id, (store) => {
          const result = store.write(effect.key, effect.expected);
          if (effect.key.phase === 'stopped' && result.type === 'written')
            world.onStopWritten(isExact(effect, sentAt, store.highest()));
          return result;
        });
      }
      case 'ask':
        return engine.ask(self, effect.id, effect.question);
      case 'answer':
        answer = effect.report;
        return;
      case 'beat':
        publisher.report(effect.report, state.epoch);
        if (effect.report.phase === 'free') engine.publish(self, 'feed', publisher.beat(clock().wall));
        else publish(publisher.beat(clock().wall));
        return;
      case 'presence':
        return engine.publish(self, 'standby', effect.presence);
      case 'offer':
        record(`${id}: offers to ${effect.to}`);
        return engine.send(self, effect.to, effect.offer);
      case 'voided':
        return engine.publish(self, 'voided', effect.gen);
      case 'evicted':
        return engine.publish(self, 'evicted', effect.evictions);
      case 'stop-notice':
        return engine.publish(self, 'stop', undefined);
      case 'open':
        isFeedOpen = true;
        return startAttempt(0);
      case 'allow':
        return sendHandshake();
      case 'close':
        isFeedOpen = false;
        return endAttempt();
      case 'end': {
        const message = publisher.end(effect.gen, clock().wall);
        if (message && state.isConnected) engine.publish(self, 'feed', message);
        if (message) follower.receive(message, monotonic());
        return;
      }
      case 'fail':
        record(`${id}: fails, ${effect.isReplaced ? 'connection replaced' : 'no candidate'}`);
        return world.onFailed(self, effect.isReplaced);
      case 'left':
        record(`${id}: left`);
        isAlive = false;
        engine.leave(self);
    }
  };

  /** Returns whether the store has lost the claim of a newer owner exactly back to the last write of this one, before its lease has ended. */
  const isExact = (
    { key, expected }: Extract<Effect, { readonly type: 'write' }>,
    sentAt: number,
    highest: number,
  ): boolean => highest > key.gen && expected === lastWrite?.revision && sentAt - (lastWrite?.at ?? 0) < leaseMs;

  const takeAnswer = (): Report | undefined => {
    const taken = answer;
    answer = undefined;
    return taken;
  };

  const endAttempt = (): void => {
    if (attempt?.state === 'open' || attempt?.state === 'sent') service.leave(attempt);
    if (attempt) attempt.state = 'over';
    attempt = undefined;
  };

  const startAttempt = (delayMs: number): void => {
    endAttempt();
    const current: Attempt = {
      name: id,
      state: 'ticket',
      ...{ ticketUntil: 0, sentIn: undefined },
      generation: () => current.sentIn,
      disturbedAt: () => (state.own === undefined || state.isLeaving ? Infinity : disturbedAt),
      answeredAt: (replica) => answers.get(replica) ?? Infinity,
      isThere: () => isAlive && current.state !== 'over',
      hasLeft: () => !isAlive || state.isLeaving,
      opened: () => run(() => opened(current)),
      refused: () => run(() => lost(current)),
      closed: (closeCode) => run(() => (closeCode === 4001 ? replaced(current) : lost(current))),
      frame: (number) => run(() => frame(current, number)),
    };
    attempt = current;
    later(delayMs + delayUpTo(chance, conditions.ticketMs), () => {
      if (current !== attempt) return;
      if (hasBadKey) return failed(false);
      current.state = 'waiting';
      current.ticketUntil = schedule.now() + ticketMs;
      input({ type: 'handshake' });
    });
  };

  const sendHandshake = (): void => {
    const current = attempt;
    if (current?.state !== 'waiting') return;
    current.state = 'sent';
    current.sentIn = state.own?.gen;
    const delayMs = handshakeDelay(chance, conditions.handshakeMs);
    record(`${id}: sends a handshake, which arrives in ${delayMs.toFixed(0)} ms`);
    service.handshake(current, delayMs, current.ticketUntil);
    later(handshakeMs, () => {
      if (current === attempt && current.state === 'sent') lost(current, true);
    });
  };

  const opened = (current: Attempt): void => {
    if (current !== attempt || current.state !== 'sent') return;
    current.state = 'open';
    disturb();
    input({ type: 'opened' });
    publish(publisher.event({ type: 'opened', at: schedule.now(), feed: 'market', connection: 1 }));
    if (outageFrom !== undefined) {
      const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
      const gap = { type: 'gap', from: outageFrom, to: schedule.now(), durationMs: 0, failure } as const;
      publish(publisher.event(gap));
    }
    outageFrom = undefined;
  };
  let outageFrom: number | undefined;

  const lost = (current: Attempt, isUnanswered = false): void => {
    if (current !== attempt || !isFeedOpen) return;
    disturb();
    if (current.state === 'open') outageFrom = schedule.now();
    startAttempt(chance.between(1, 500));
    input({ type: 'disconnected', isUnanswered });
  };

  const failed = (isReplaced: boolean): void => {
    endAttempt();
    isFeedOpen = false;
    outageFrom = undefined;
    input({ type: 'failed', isReplaced });
  };

  const replaced = (current: Attempt): void => {
    if (current !== attempt) return;
    record(`${id}: receives 4001`);
    outageFrom = undefined;
    failed(true);
    if (state.own) outageFrom = schedule.now();
  };

  const frame = (current: Attempt, number: number): void => {
    if (current === attempt && current.state === 'open')
      publish(publisher.frame(new Frame('market', payload, false, number, 1)));
  };

  const self: SimulatedReplica = {
    id,
    state: () => state,
    conditions,
    isAlive: () => isAlive,
    hasConnection: () => attempt?.state === 'open',
    followed: () => follower.position?.run,
    input,
    run,
    receive: (message) => {
      if (message.owner === id && message.phase !== 'free') return;
      // An owner that emits its own frames receives only the beats of others.
      if (message.kind !== 'beat' && isServing(state) && follower.follows(state.own!.gen, id)) return;
      follower.receive(message, monotonic());
      if (message.kind === 'beat') {
        const { gen, owner, phase, revision } = message;
        input({ type: 'heard', report: { gen, owner, phase, revision } });
      } else scheduleTick();
    },
    disturb,
    pause: () => {
      pausedAt ??= schedule.now();
    },
    resume: (wasSuspended) => {
      if (pausedAt === undefined) return;
      if (wasSuspended) suspendedMs += schedule.now() - pausedAt;
      pausedAt = undefined;
      const waiting = inbox;
      inbox = [];
      // After a pause, timers can run before the sockets are read.
      if (chance.isTrue(0.5)) input({ type: 'tick' });
      for (const action of waiting) run(action);
      scheduleTick();
    },
    kill: () => {
      record(`${id}: is killed`);
      endAttempt();
      isAlive = false;
      engine.leave(self);
    },
    jumpClock: (ms) => {
      wallShift += ms;
    },
  };

  engine.join(self, {
    disconnected: () => {
      input({ type: 'engine', isConnected: false });
      if (state.own === undefined && state.draining === undefined) follower.away(schedule.now());
    },
    asked: (question, from) => {
      input({ type: 'asked', question });
      const report = takeAnswer();
      if (report && !answers.has(from)) answers.set(from, schedule.now());
      return report;
    },
    isServing: () => isServing(state),
  });
  record(`${id}: starts`);
  input({ type: 'start' });
  return self;
};

const hasEvictionToWrite = ({ isEvicted, isReleasing, evictions }: Own, written = 0): boolean =>
  isEvicted || (isReleasing && evictions.length > written);

// Each replica decodes the bytes of a message, so it has separate frames.
const copyOf = (message: FeedMessage): FeedMessage =>
  message.kind === 'batch'
    ? {
        ...message,
        batch: message.batch.map((each) => new Frame(each.feed, each.data, each.isBinary, each.receivedAt, 0)),
      }
    : message;
