import { merge, Observable, Subscription, take } from 'rxjs';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import { createTradeFeedError } from '../protocol/failures/classify.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { PositionedFeed } from '../protocol/feed-position.js';
import type { Feed } from '../protocol/feed.js';
import { clampMs } from '../protocol/rules.js';
import { type ClusterSettings, replicaId } from './cluster-options.js';
import { type ClusterStatus, isChanged, statusOf } from './cluster-status.js';
import { readKey, writeKey } from './election/cluster-key.js';
import {
  type CallResult,
  createElection,
  type Effect,
  type ElectionSettings,
  type Input,
  nextTick,
} from './election/election.js';
import { isServing, step } from './election/step.js';
import { reportOf } from './election/turn.js';
import type { ClusterEngine } from './engine/cluster-engine.js';
import { createFeedRun } from './feed-run.js';
import { createFollower } from './follower/follower.js';
import {
  readEvictions,
  readOffer,
  readPresence,
  readQuestion,
  readReport,
  readVoided,
  writeControl,
} from './messages/control.js';
import { createDecoder } from './messages/decoder.js';
import type { FeedMessage } from './messages/feed-message.js';
import { createPublisher } from './messages/publisher.js';
import { createOutbox } from './outbox.js';
import { subjectsOf } from './subjects.js';

/** What a replica reports. */
export interface ReplicaHandlers {
  readonly event: (event: FeedEvent | OwnerChanged) => void;
  readonly error: (error: unknown) => void;
  readonly status: (status: ClusterStatus) => void;
}

/** A replica that runs: the election with its clock, the engine and the feed. */
export interface Replica extends PositionedFeed {
  /** Gives the ownership away. Resolves when another replica has it, or when there is none. Frames continue to arrive. */
  handOver(): Promise<void>;
  /** Ends the replica. It gives the ownership away in the background. */
  close(): void;
}

/** How long a question to the owner may take, in ms. The election has a shorter limit. */
const requestMs = 1_000;

/**
 * An owner whose messages have not come back for this many leases sends only beats. Its connection may be cut off without notice, and the client
 * of the engine would store all frames.
 */
const silentLeases = 5;

/** Starts a replica. */
export const startReplica = (
  feed: Feed,
  settings: ClusterSettings,
  where: string,
  handlers: ReplicaHandlers,
): Replica => {
  const { engine, account, batchBytes } = settings;
  let id = replicaId(settings.replica);
  const subjects = subjectsOf(account);
  let decoder = createDecoder(feed, settings.feed.maxFrameBytes, id);
  const publisher = createPublisher();
  const follower = createFollower(feed, (event) => {
    if (!isClosed) handlers.event(event);
  });
  const outbox = createOutbox((bytes) => publish(subjects.feed, bytes), batchBytes);
  const running = new Subscription();
  const inputs: Input[] = [];
  let state = createElection(electionSettings(settings, feed, id), isConnectedNow(engine));
  let isBusy = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let serving: Subscription | undefined;
  let answer: Uint8Array | undefined;
  let failure: unknown;
  let status: ClusterStatus | undefined;
  let isRejoining = false;
  let offers: Subscription | undefined;
  /** When the last message to all replicas arrived, also one of this replica. */
  let receivedAt: number | undefined;
  let isSilent = false;
  let left: () => void;
  const hasLeft = new Promise<void>((resolve) => {
    left = resolve;
  });

  const hasEnded = (): boolean => running.closed;

  const takeAnswer = (): Uint8Array => {
    const taken = answer;
    answer = undefined;
    return taken ?? new Uint8Array();
  };

  const publish = (subject: string, bytes: Uint8Array): void => {
    if (state.isConnected) engine.publish(subject, bytes);
  };

  const publishItem = (message: FeedMessage | undefined): void => {
    if (message === undefined) return;
    if (!isSilent) outbox.add(message);
    follower.receive(message, performance.now());
    if (follower.nextTick !== undefined) schedule();
  };

  const run = createFeedRun(feed, settings.feed, where, {
    input: (each) => input(each),
    frame: (frame) => publishItem(publisher.frame(frame)),
    event: (event) => publishItem(publisher.event(event)),
    failed: (error) => {
      failure = error;
    },
  });

  // An effect can cause the next input before the other effects are done.
  const input = (each: Input): void => {
    if (hasEnded()) return;
    inputs.push(each);
    if (isBusy) return;
    isBusy = true;
    for (let next = inputs.shift(); next !== undefined; next = inputs.shift()) {
      const clock = { now: performance.now(), wall: Date.now(), random: Math.random(), followed: follower.generation };
      const result = step(state, next, clock);
      ({ state } = result);
      if (state.own) publisher.report(reportOf(state, state.own), state.own.epoch);
      serve();
      // An effect, or the engine, can end the replica.
      for (const effect of result.effects) if (!hasEnded()) perform(effect);
    }
    isBusy = false;
    if (hasEnded()) return;
    schedule();
    reportStatus();
  };

  const schedule = (): void => {
    clearTimeout(timer);
    const at = Math.min(nextTick(state), follower.nextTick ?? Infinity);
    if (at === Infinity) return;
    timer = setTimeout(tick, clampMs(Math.max(0, Math.ceil(at - performance.now()))));
  };

  const tick = (): void => {
    follower.tick(performance.now());
    input({ type: 'tick' });
  };

  const reportStatus = (): void => {
    const now = statusOf(state);
    if (status !== undefined && !isChanged(status, now)) return;
    const isSameOwner = status !== undefined && status.owner === now.owner && status.generation === now.generation;
    const since = isSameOwner ? (status as ClusterStatus).since : Date.now();
    status = { ...now, since };
    if (!isClosed) handlers.status(status);
  };

  const serve = (): void => {
    if (isServing(state) === (serving !== undefined)) return;
    serving?.unsubscribe();
    if (!isServing(state)) {
      serving = undefined;
      return;
    }
    serving = merge(
      engine.respond(subjects.owner, (data) => {
        const question = readQuestion(data);
        if (question) input({ type: 'asked', question });
        return takeAnswer();
      }),
      engine.respond(subjects.handOver, () => {
        isRejoining = true;
        setImmediate(() => input({ type: 'hand-over' }));
        return new Uint8Array();
      }),
    ).subscribe({ error: end });
  };

  const access = async (effect: Extract<Effect, { readonly type: 'read' | 'write' }>): Promise<CallResult> => {
    if (effect.type === 'read') {
      const stored = await engine.read(subjects.key);
      return { type: 'entry', key: stored && readKey(stored.value), revision: stored?.revision };
    }
    const revision = await engine.compareAndSet(subjects.key, writeKey(effect.key), effect.expected);
    return revision === undefined ? { type: 'conflict' } : { type: 'written', revision };
  };

  const call = async (effect: Parameters<typeof access>[0]): Promise<void> => {
    const caller = id;
    const result = await access(effect).catch((error: unknown): CallResult | TradeFeedError =>
      error instanceof TradeFeedError ? error : { type: 'unknown' },
    );
    // This version cannot read the key, so it can never own it.
    if (result instanceof TradeFeedError) end(result);
    // Of an earlier run of the election.
    else if (caller === id) input({ type: 'call', id: effect.id, result });
  };

  const ask = async (data: Uint8Array): Promise<Extract<Input, { readonly type: 'ask' }>['result']> => {
    try {
      const reply = await engine.request(subjects.owner, data, requestMs);
      if (reply.type === 'no-responders') return reply;
      const report = readReport(reply.data);
      return report ? { type: 'answer', report } : { type: 'no-answer' };
    } catch {
      return { type: 'no-answer' };
    }
  };

  const askOwner = async (effect: Extract<Effect, { readonly type: 'ask' }>): Promise<void> => {
    const caller = id;
    const result = await ask(writeControl(effect.question));
    if (caller === id) input({ type: 'ask', id: effect.id, result });
  };

  const perform = (effect: Effect): void => {
    switch (effect.type) {
      case 'read':
      case 'write':
        return void call(effect);
      case 'ask':
        return void askOwner(effect);
      case 'answer':
        answer = writeControl(effect.report);
        return;
      case 'beat': {
        publisher.report(effect.report, state.epoch);
        isSilent = receivedAt !== undefined && performance.now() - receivedAt > settings.leaseMs * silentLeases;
        const beat = publisher.beat(Date.now());
        outbox.add(beat);
        if (effect.report.phase !== 'free') follower.receive(beat, performance.now());
        return;
      }
      case 'presence':
        return publish(subjects.standby, writeControl(effect.presence));
      case 'offer':
        return publish(subjects.to(effect.to), writeControl(effect.offer));
      case 'voided':
        return publish(subjects.voided, writeControl({ gen: effect.gen }));
      case 'evicted':
        return publish(subjects.evicted, writeControl({ evictions: effect.evictions }));
      case 'stop-notice':
        return publish(subjects.stop, new Uint8Array());
      case 'open':
        return run.open();
      case 'allow':
        return run.allow();
      case 'close':
        return run.close();
      case 'end':
        return publishItem(publisher.end(effect.gen, Date.now()));
      case 'fail':
        return end(effect.isReplaced ? replacedByOther() : failure);
      case 'left':
        outbox.flush();
        if (isRejoining && !isClosed) return rejoin();
        left();
        if (isClosed) running.unsubscribe();
    }
  };

  // A new run of the election. The follower continues, so the application notices the change of the owner only.
  const rejoin = (): void => {
    isRejoining = false;
    id = replicaId(settings.replica);
    decoder = createDecoder(feed, settings.feed.maxFrameBytes, id);
    state = createElection(electionSettings(settings, feed, id), isConnectedNow(engine));
    receiveOffers();
    input({ type: 'start' });
  };

  const receiveOffers = (): void => {
    offers?.unsubscribe();
    offers = messages(subjects.to(id), readOffer, (offer) => ({ type: 'offer', offer })).subscribe();
  };

  const end = (error: unknown): void => {
    if (hasEnded()) return;
    left();
    run.close();
    if (!isClosed) {
      reportStatus();
      if (error instanceof TradeFeedError) handlers.event({ type: 'stopped', at: Date.now(), failure: error });
    }
    running.unsubscribe();
    if (!isClosed) handlers.error(error);
  };

  const receive = (bytes: Uint8Array): void => {
    receivedAt = performance.now();
    isSilent = false;
    const message = decoder.decode(bytes);
    if (message === undefined) return;
    if (message.phase !== 'free') follower.receive(message, performance.now());
    if (message.kind === 'beat') input({ type: 'heard', report: message });
    else if (follower.nextTick !== undefined) schedule();
  };

  const messages = <T>(subject: string, read: (data: Uint8Array) => T | undefined, inputOf: (value: T) => Input) =>
    new Observable<never>(() =>
      engine.subscribe(subject).subscribe({
        next: (data) => {
          const value = read(data);
          if (value !== undefined) input(inputOf(value));
        },
        error: end,
      }),
    );

  running.add(() => {
    clearTimeout(timer);
    serving?.unsubscribe();
    offers?.unsubscribe();
    run.close();
    inputs.length = 0;
  });
  running.add(engine.subscribe(subjects.feed).subscribe({ next: receive, error: end }));
  running.add(
    merge(
      messages(subjects.standby, readPresence, (presence) => ({ type: 'standby', presence })),
      messages(subjects.voided, readVoided, ({ gen }) => ({ type: 'voided', gen })),
      messages(subjects.evicted, readEvictions, ({ evictions }) => ({ type: 'evicted', evictions })),
      messages(
        subjects.stop,
        () => true,
        () => ({ type: 'stop-notice' }),
      ),
    ).subscribe(),
  );
  receiveOffers();
  input({ type: 'start' });
  running.add(
    engine.connected$.subscribe((isConnected) => {
      if (isConnected === state.isConnected) return;
      input({ type: 'engine', isConnected });
      if (!isConnected && state.own === undefined && state.draining === undefined) follower.away(Date.now());
    }),
  );

  return {
    get position() {
      return follower.position;
    },
    handOver: () => {
      isRejoining = false;
      input({ type: 'hand-over' });
      return hasLeft;
    },
    close: () => {
      isClosed = true;
      isRejoining = false;
      if (state.role === 'stopped' || state.role === 'left') running.unsubscribe();
      else input({ type: 'hand-over' });
    },
  };
};

const electionSettings = (settings: ClusterSettings, feed: Feed, replica: string): ElectionSettings => {
  const { canOwn, leaseMs, renewMs, marginMs, suspectMs, handOverMs } = settings;
  return { replica, since: Date.now(), feed, canOwn, leaseMs, renewMs, marginMs, suspectMs, handOverMs };
};

const isConnectedNow = ({ connected$ }: ClusterEngine): boolean => {
  let isConnected = false;
  connected$.pipe(take(1)).subscribe((now) => {
    isConnected = now;
  });
  return isConnected;
};

const replacedByOther = (): TradeFeedError =>
  createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
