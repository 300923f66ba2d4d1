import {
  distinctUntilChanged,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  Subject,
  Subscription,
  switchMap,
} from 'rxjs';
import type { AccountUser } from '../feed/accounts.js';
import type { ClusterEvent } from '../protocol/event.js';
import { EventRecord, type LogEntry } from '../protocol/event-record.js';
import { createTradeFeedError } from '../protocol/failures/classify.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Place, PositionedFeed } from '../protocol/place.js';
import type { Feed } from '../protocol/feed.js';
import { clampMs } from '../protocol/validate.js';
import { type ClusterSettings, misfit, replicaId, sourceOf } from './cluster-options.js';
import {
  accessKey,
  type Control,
  inputsOfAll,
  offers$,
  readQuestion,
  readReport,
  type Subjects,
  subjectsOf,
  writeControl,
} from './control.js';
import {
  type CallResult,
  type Effect,
  type EffectOf,
  Election,
  hasFeed,
  type Input,
  isServing,
  nextTick,
  ownerOf,
  reportOf,
} from './election/election.js';
import { step } from './election/step.js';
import { timing } from './election/timing.js';
import { engineClosed, EngineFaults, watchEngine, type WatchedEngine } from './engine-faults.js';
import type { EngineFailure } from './engine.js';
import { FeedChannel } from './feed-channel.js';
import { FeedRun } from './feed-run.js';
import type { LineExtent } from '../log/line-store.js';
import type { EmitEvent, LineCounts } from './follower.js';
import { type ElectionStatus, statusOf } from './status.js';

interface ReplicaHandlers {
  readonly event: EmitEvent<ClusterEvent>;
  /** Writes an entry that isn't emitted to the log, and publishes it on the channels. */
  readonly show: (entry: LogEntry) => void;
  readonly error: (error: unknown) => void;
  readonly status: (status: ElectionStatus) => void;
  readonly counts: LineCounts;
}

const noAnswer: Uint8Array = new Uint8Array();

/** Runs a replica: gives the election its inputs, and performs its effects with the engine and the feed. */
export class Replica implements PositionedFeed {
  readonly #settings: ClusterSettings;
  readonly #handlers: ReplicaHandlers;
  readonly #subjects: Subjects;
  readonly #source: string;
  readonly #faults: EngineFaults;
  readonly #engine: WatchedEngine;
  readonly #channel: FeedChannel;
  readonly #run: FeedRun;
  readonly #running = new Subscription(() => this.#release());
  /** Completes when this replica has given the ownership away, or has ended. */
  readonly #left$ = new Subject<void>();
  readonly #elections$ = new Subject<Election>();
  /** After an operator's hand-over the replica rejoins with another election, and a new id. */
  #election: Election;
  /** Ends with this election. Takes no input before it joins, and none afterwards. */
  #term = Subscription.EMPTY;
  #inputs: Input[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** The answer to the question of this step. */
  #answer = noAnswer;
  #status: ElectionStatus | undefined;
  #isConnected = false;
  /** What follows when the election has left: `rejoin` after an operator's hand-over. */
  #then: 'rejoin' | 'rest' | 'close' | undefined;

  constructor(feed: Feed, settings: ClusterSettings, user: AccountUser, handlers: ReplicaHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#subjects = subjectsOf(settings.account);
    this.#source = sourceOf(feed, settings.feed.baseUrl);
    this.#faults = new EngineFaults((event) => {
      this.#reportStatus();
      handlers.event(event);
    });
    this.#engine = watchEngine(settings.engine, this.#faults);
    this.#channel = new FeedChannel(feed, settings, {
      engine: this.#engine,
      faults: this.#faults,
      election: () => this.#election,
      event: handlers.event,
      show: (event) => {
        if (event.type !== 'watermark') handlers.show(event);
      },
      heard: (report) => this.#input({ type: 'heard', report }),
      error: (error) => this.#end(error),
      counts: handlers.counts,
    });
    const account = { ...user, group: `cluster ${settings.account}` };
    this.#run = new FeedRun(feed, settings.feed, account, {
      input: (each) => this.#input(each),
      frame: (frame) => this.#channel.frame(frame),
      event: (event) => this.#channel.event(event),
      show: handlers.show,
      hasOpened: () => this.#channel.follower.hasOpened,
    });
    this.#election = this.#createElection();
  }

  get position(): Place | undefined {
    return this.#channel.follower.position;
  }

  get line(): LineExtent | undefined {
    return this.#channel.extent;
  }

  /** The generation whose events this replica emits as their owner, until its connection has ended. */
  get ownGeneration(): number | undefined {
    const { settings, state } = this.#election;
    const { gen, owner } = this.#channel.follower.emitted;
    const isConnected = isServing(this.#election) || ('draining' in state && state.draining === gen);
    return owner === settings.replica && isConnected ? gen : undefined;
  }

  start(): void {
    const engine = this.#engine;
    const closed = (reason?: unknown): void => {
      if (this.#election.state.name !== 'left') this.#end(engineClosed(reason));
    };
    const next = (isConnected: boolean): void => this.#connectionChanged(isConnected);
    this.#running.add(engine.connected$.subscribe({ next, error: closed, complete: closed }));
    this.#running.add(engine.failures$.subscribe((failure) => this.#engineFailed(failure)));
    if (this.#running.closed) return;
    this.#join();
    this.#running.add(this.#subscribe(merge(...inputsOfAll(engine, this.#subjects))));
  }

  handOver(): Promise<void> {
    this.#then = 'rest';
    this.#input({ type: 'hand-over' });
    return lastValueFrom(this.#left$, { defaultValue: undefined });
  }

  /** Ends the replica. Gives the ownership away in the background. */
  close(): void {
    this.#then = 'close';
    const { name } = this.#election.state;
    if (name === 'stopped' || name === 'left') this.#running.unsubscribe();
    else this.#input({ type: 'hand-over' });
  }

  #createElection(): Election {
    const replica = replicaId(this.#settings.replica, this.#source);
    return new Election({ ...this.#settings, source: this.#source, replica, since: Date.now() }, this.#isConnected);
  }

  #join(): void {
    this.#election = this.#createElection();
    this.#inputs = [];
    this.#term = new Subscription(() => clearTimeout(this.#timer));
    this.#running.add(this.#term);
    const served$ = this.#elections$.pipe(
      map(isServing),
      distinctUntilChanged(),
      switchMap((isOwner) => (isOwner ? this.#served$() : NEVER)),
    );
    const offered$ = offers$(this.#engine, this.#subjects.to(this.#election.settings.replica));
    this.#term.add(this.#subscribe(merge(served$, offered$)));
    this.#input({ type: 'start' });
  }

  #subscribe(inputs$: Observable<Input>): Subscription {
    return inputs$.subscribe({ next: (each) => this.#input(each), error: (error: unknown) => this.#end(error) });
  }

  #served$(): Observable<never> {
    const [engine, subjects, term] = [this.#engine, this.#subjects, this.#term];
    const answers$ = engine.respond(subjects.owner, (data) => {
      const question = readQuestion(data);
      this.#answer = noAnswer;
      if (question) this.#input({ type: 'asked', question });
      return this.#answer;
    });
    const handOvers$ = engine.respond(subjects.handOver, () => {
      this.#then ??= 'rejoin';
      setImmediate(() => this.#inputOf(term, { type: 'hand-over' }));
      return noAnswer;
    });
    return merge(answers$, handOvers$);
  }

  #input(each: Input): void {
    const [term, inputs] = [this.#term, this.#inputs];
    // An effect can cause the next input before the other effects are done. The loop handles both.
    if (inputs.push(each) > 1) return;
    for (const next of inputs) if (!term.closed) this.#handle(next, term);
    inputs.length = 0;
    if (term.closed) return;
    clearTimeout(this.#timer);
    const waitMs = Math.max(0, Math.ceil(nextTick(this.#election) - performance.now()));
    if (waitMs !== Infinity) this.#timer = setTimeout(() => this.#input({ type: 'tick' }), clampMs(waitMs));
    this.#reportStatus();
  }

  /** The input is late: the replica may have rejoined. */
  #inputOf(term: Subscription, each: Input): void {
    if (!term.closed) this.#input(each);
  }

  #handle(each: Input, term: Subscription): void {
    const channel = this.#channel;
    const followed = channel.follower.emitted;
    const clock = { now: performance.now(), wall: Date.now(), random: Math.random(), followed };
    const { state, effects } = step(this.#election, each, clock);
    this.#election = state;
    channel.report(reportOf(state), isServing(state), ownerOf(state)?.changes.at(-1)?.cause === 'hand-over');
    this.#elections$.next(state);
    // An effect, or the engine, can end the replica.
    for (const effect of effects) if (!term.closed) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    const [subjects, channel, run] = [this.#subjects, this.#channel, this.#run];
    const publish = (subject: string, message: Control): void => channel.publish(subject, writeControl(message));
    switch (effect.type) {
      case 'read':
      case 'write':
        return void this.#call(effect);
      case 'ask':
        return void this.#ask(effect);
      case 'answer':
        this.#answer = writeControl(effect.report);
        return;
      case 'beat':
        return channel.beat(effect.report);
      case 'presence': {
        const { current } = this.#faults;
        const refused = current && { refused: new EventRecord(current).msg };
        return publish(subjects.standby, { ...effect.presence, ...refused });
      }
      case 'offer':
        return publish(subjects.to(effect.to), effect.offer);
      case 'voided':
      case 'evicted':
        return publish(subjects[effect.type], effect);
      case 'stop-notice':
        return channel.publish(subjects.stop, new Uint8Array());
      case 'open':
        return run.open();
      case 'allow':
        return run.allow();
      case 'close':
        return run.close();
      case 'end':
        return channel.end(effect.gen);
      case 'fail':
        if (effect.other) return this.#end(misfit(this.#settings.account, effect.other, this.#source));
        return this.#end(effect.isReplaced ? replacedByOther() : run.failure);
      case 'left':
        return this.#leave();
    }
  }

  async #call(effect: EffectOf<'read' | 'write'>): Promise<void> {
    const term = this.#term;
    const unknown: CallResult = { type: 'unknown' };
    // The watched engine has reported the failure.
    const result = await accessKey(this.#engine, this.#subjects.key, effect).catch(() => unknown);
    this.#inputOf(term, { type: 'call', id: effect.id, result });
  }

  async #ask({ id, question }: EffectOf<'ask'>): Promise<void> {
    const term = this.#term;
    // The watched engine has reported any failure; to the election it's an unanswered question.
    const asked = this.#engine.request(this.#subjects.owner, writeControl(question), timing.engineAskMs);
    const reply = await asked.catch(() => undefined);
    const report = reply?.type === 'reply' ? readReport(reply.data) : undefined;
    const result = reply?.type === 'no-responders' ? reply.type : (report ?? 'no-answer');
    this.#inputOf(term, { type: 'ask', id, result });
  }

  #reportStatus(): void {
    const next = statusOf(this.#election, this.#run.failure, this.#faults.current, this.#status);
    if (next === this.#status) return;
    this.#status = next;
    this.#handlers.status(next);
  }

  #engineFailed({ operation, error }: EngineFailure): void {
    // While connected, the error concerns something that this replica sent.
    const isConnected = operation === 'connect' && this.#election.isConnected;
    this.#faults.failed(isConnected ? 'publish' : operation, error);
  }

  #connectionChanged(isConnected: boolean): void {
    if (isConnected) this.#faults.worked('connect');
    else this.#faults.failed('connect', undefined);
    if (isConnected === this.#isConnected) return;
    this.#isConnected = isConnected;
    this.#input({ type: 'engine', isConnected });
    this.#channel.connected(isConnected, !hasFeed(this.#election));
  }

  #leave(): void {
    this.#channel.flush();
    // The follower continues, so the application only notices the change of the owner.
    if (this.#then === 'rejoin') {
      this.#then = undefined;
      this.#term.unsubscribe();
      return this.#join();
    }
    this.#left$.complete();
    if (this.#then === 'close') this.#running.unsubscribe();
  }

  #end(error: unknown): void {
    if (this.#running.closed) return;
    this.#left$.complete();
    this.#run.close();
    this.#reportStatus();
    if (error instanceof TradeFeedError) this.#handlers.event({ type: 'stopped', at: Date.now(), failure: error });
    this.#running.unsubscribe();
    this.#handlers.error(error);
  }

  #release(): void {
    this.#run.close();
    this.#channel.close();
    this.#faults.close();
  }
}

const replacedByOther = (): TradeFeedError =>
  createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
