import { distinctUntilChanged, filter, map, merge, NEVER, Subject, Subscription, switchMap, take } from 'rxjs';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import { createTradeFeedError } from '../protocol/failures/classify.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { PositionedFeed } from '../protocol/feed-position.js';
import type { Feed } from '../protocol/feed.js';
import { type ClusterSettings, replicaId } from './cluster-options.js';
import { type ClusterStatus, nextStatus } from './cluster-status.js';
import {
  type CallResult,
  createElection,
  type Effect,
  type Election,
  type ElectionSettings,
  type Input,
} from './election/election.js';
import { isServing } from './election/step.js';
import { reportOf } from './election/turn.js';
import { createElectionRun, type ElectionRun } from './election-run.js';
import type { ClusterEngine } from './engine/cluster-engine.js';
import { access, ask } from './engine-calls.js';
import { createFeedChannel } from './feed-channel.js';
import { createFeedRun } from './feed-run.js';
import { readEvictions, readOffer, readPresence, readQuestion, readVoided, writeControl } from './messages/control.js';
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

/** One run of the election. Its id is never used again. */
interface Candidate {
  readonly id: string;
  readonly election: ElectionRun;
  /** What ends with this run. */
  readonly running: Subscription;
}

/** Starts a replica. */
export const startReplica = (
  feed: Feed,
  settings: ClusterSettings,
  where: string,
  handlers: ReplicaHandlers,
): Replica => {
  const { engine, account } = settings;
  const subjects = subjectsOf(account);
  const running = new Subscription();
  let candidate: Candidate;
  let status: ClusterStatus | undefined;
  let failure: unknown;
  let isClosed = false;
  /** Whether the application has given the ownership away. */
  let isLeaving = false;
  let isRejoining = false;
  let left: () => void;
  const hasLeft = new Promise<void>((resolve) => {
    left = resolve;
  });

  const input = (each: Input): void => candidate.election.input(each);

  const publish = (subject: string, bytes: Uint8Array): void => {
    if (candidate.election.state.isConnected) engine.publish(subject, bytes);
  };

  const reportStatus = (state: Election): void => {
    const next = nextStatus(status, state, Date.now());
    if (next === status) return;
    status = next;
    if (!isClosed) handlers.status(next);
  };

  const end = (error: unknown): void => {
    if (running.closed) return;
    left();
    run.close();
    if (!isClosed) {
      reportStatus(candidate.election.state);
      if (error instanceof TradeFeedError) handlers.event({ type: 'stopped', at: Date.now(), failure: error });
    }
    running.unsubscribe();
    if (!isClosed) handlers.error(error);
  };

  const channel = createFeedChannel(feed, settings, {
    self: () => candidate.id,
    publish,
    event: (event) => {
      if (!isClosed) handlers.event(event);
    },
    heard: (report) => input({ type: 'heard', report }),
    error: end,
  });

  const run = createFeedRun(feed, settings.feed, where, {
    input,
    frame: channel.frame,
    event: channel.event,
    failed: (error) => {
      failure = error;
    },
  });

  const received = <T>(subject: string, read: (data: Uint8Array) => T | undefined, inputOf: (value: T) => Input) =>
    engine.subscribe(subject).pipe(
      map(read),
      filter((value) => value !== undefined),
      map(inputOf),
    );

  const startCandidate = (): void => {
    const id = replicaId(settings.replica);
    const initial = createElection(electionSettings(settings, feed, id), isConnectedNow(engine));
    const states$ = new Subject<Election>();
    let answer: Uint8Array = new Uint8Array();

    const perform = (effect: Effect): void => {
      switch (effect.type) {
        case 'read':
        case 'write':
          return void call(effect);
        case 'ask':
          return void ask(engine, subjects, effect).then((result) =>
            election.input({ type: 'ask', id: effect.id, result }),
          );
        case 'answer':
          answer = writeControl(effect.report);
          return;
        case 'beat':
          return channel.beat(effect.report, election.state.epoch);
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
          return channel.end(effect.gen);
        case 'fail':
          return end(effect.isReplaced ? replacedByOther() : failure);
        case 'left':
          return leave();
      }
    };

    const election = createElectionRun(initial, {
      followed: () => channel.generation,
      changed: (state) => {
        channel.report(state.own && reportOf(state, state.own), state.epoch, isServing(state));
        states$.next(state);
      },
      perform,
      settled: reportStatus,
    });

    const call = async (effect: Parameters<typeof access>[2]): Promise<void> => {
      const result = await access(engine, subjects, effect).catch((error: unknown): CallResult | TradeFeedError =>
        error instanceof TradeFeedError ? error : { type: 'unknown' },
      );
      // This version cannot read the key, so it can never own it.
      if (result instanceof TradeFeedError) end(result);
      else election.input({ type: 'call', id: effect.id, result });
    };

    const answers$ = engine.respond(subjects.owner, (data) => {
      const question = readQuestion(data);
      answer = new Uint8Array();
      if (question) election.input({ type: 'asked', question });
      return answer;
    });

    const handOvers$ = engine.respond(subjects.handOver, () => {
      isRejoining = true;
      setImmediate(() => election.input({ type: 'hand-over' }));
      return new Uint8Array();
    });

    candidate = { id, election, running: new Subscription(() => election.stop()) };
    running.add(candidate.running);
    const served$ = states$.pipe(
      map(isServing),
      distinctUntilChanged(),
      switchMap((isOwner) => (isOwner ? merge(answers$, handOvers$) : NEVER)),
    );
    const offers$ = received(subjects.to(id), readOffer, (offer) => ({ type: 'offer', offer }));
    candidate.running.add(merge(served$, offers$).subscribe({ next: election.input, error: end }));
    election.input({ type: 'start' });
  };

  const leave = (): void => {
    channel.flush();
    // The follower continues, so the application notices the change of the owner only.
    if (isRejoining && !isLeaving) {
      isRejoining = false;
      candidate.running.unsubscribe();
      return startCandidate();
    }
    left();
    if (isClosed) running.unsubscribe();
  };

  running.add(() => {
    run.close();
    channel.close();
  });
  startCandidate();
  running.add(
    merge(
      received(subjects.standby, readPresence, (presence) => ({ type: 'standby', presence })),
      received(subjects.voided, readVoided, ({ gen }) => ({ type: 'voided', gen })),
      received(subjects.evicted, readEvictions, ({ evictions }) => ({ type: 'evicted', evictions })),
      engine.subscribe(subjects.stop).pipe(map((): Input => ({ type: 'stop-notice' }))),
    ).subscribe({ next: input, error: end }),
  );
  running.add(
    engine.connected$.subscribe((isConnected) => {
      const { state } = candidate.election;
      if (isConnected === state.isConnected) return;
      input({ type: 'engine', isConnected });
      const { own, draining } = candidate.election.state;
      if (!isConnected && own === undefined && draining === undefined) channel.away();
    }),
  );

  return {
    get position() {
      return channel.position;
    },
    handOver: () => {
      isLeaving = true;
      input({ type: 'hand-over' });
      return hasLeft;
    },
    close: () => {
      isClosed = true;
      isLeaving = true;
      const { role } = candidate.election.state;
      if (role === 'stopped' || role === 'left') running.unsubscribe();
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
