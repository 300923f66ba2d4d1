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
import type { ClusterEvent, Watermark } from '../protocol/event.js';
import { EventRecord, type LogEntry } from '../protocol/event-record.js';
import { copyFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Place, PositionedFeed } from '../protocol/place.js';
import type { Feed } from '../protocol/feed.js';
import { clampMs } from '../protocol/validate.js';
import { type ClusterSettings, misfit, replicaId, sourceOf } from './cluster-options.js';
import {
  accessKey,
  type Control,
  inputsOf,
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
import { type EmitEvent, type LineCounts, replacedAt } from './follower.js';
import { type ElectionStatus, statusOf } from './status.js';

interface ReplicaHandlers {
  readonly event: EmitEvent<ClusterEvent>;
  /** Writes an entry that isn't emitted to the log, and publishes it on the channels. */
  readonly show: (entry: LogEntry | Watermark) => void;
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
  readonly #faults: EngineFaults;
  readonly #engine: WatchedEngine;
  readonly #channel: FeedChannel;
  readonly #run: FeedRun;
  readonly #running = new Subscription(() => this.#release());
  /** Completes when this replica has given the ownership away for good, or has ended. */
  readonly #left$ = new Subject<void>();
  readonly #elections$ = new Subject<Election>();
  readonly #inputs: Input[] = [];
  #election: Election;
  #timer: NodeJS.Timeout | undefined;
  /** The answer to the question of this step. */
  #answer = noAnswer;
  #status: ElectionStatus | undefined;
  #isConnected: boolean | undefined;
  #isClosing = false;

  constructor(feed: Feed, settings: ClusterSettings, user: AccountUser, handlers: ReplicaHandlers) {
    this.#settings = settings;
    this.#handlers = handlers;
    this.#subjects = subjectsOf(settings.account);
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
      show: handlers.show,
      heard: (report) => this.#input({ type: 'heard', report }),
      fenced: (gen) => this.#input({ type: 'fenced', gen }),
      error: (error) => this.#end(error),
      counts: handlers.counts,
    });
    const account = { ...user, group: `cluster ${settings.account}` };
    this.#run = new FeedRun(feed, settings.feed, account, {
      channel: this.#channel,
      input: (each) => this.#input(each),
      show: handlers.show,
    });
    const source = sourceOf(feed, settings.feed.baseUrl);
    const replica = replicaId(settings.replica, source);
    this.#election = new Election({ ...settings, source, replica, since: Date.now() });
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
    const served$ = this.#elections$.pipe(
      map(isServing),
      distinctUntilChanged(),
      switchMap((isOwner) => (isOwner ? this.#served$() : NEVER)),
    );
    const inputs$ = merge(served$, inputsOf(engine, this.#subjects, this.#election.settings.replica));
    const error = (reason: unknown): void => this.#end(reason);
    this.#running.add(inputs$.subscribe({ next: (each) => this.#input(each), error }));
    const closed = (reason?: unknown): void => {
      if (this.#election.state.name !== 'left') this.#end(engineClosed(reason));
    };
    const next = (isConnected: boolean): void => this.#connectionChanged(isConnected);
    this.#running.add(engine.connected$.subscribe({ next, error: closed, complete: closed }));
    // While connected, the error concerns something that this replica sent.
    const failed = ({ operation, error }: EngineFailure): void =>
      this.#faults.failed(operation === 'connect' && this.#isConnected ? 'publish' : operation, error);
    this.#running.add(engine.failures$.subscribe(failed));
  }

  handOver(): Promise<void> {
    this.#input({ type: 'hand-over' });
    return lastValueFrom(this.#left$, { defaultValue: undefined });
  }

  /** Ends the replica. Gives the ownership away in the background. */
  close(): void {
    this.#isClosing = true;
    const { name } = this.#election.state;
    if (name === 'stopped' || name === 'left') this.#running.unsubscribe();
    else this.#input({ type: 'hand-over' });
  }

  #served$(): Observable<never> {
    const [engine, subjects] = [this.#engine, this.#subjects];
    const answers$ = engine.respond(subjects.owner, (data) => {
      const question = readQuestion(data);
      this.#answer = noAnswer;
      if (question) this.#input({ type: 'asked', question });
      return this.#answer;
    });
    const handOvers$ = engine.respond(subjects.handOver, () => {
      setImmediate(() => this.#input({ type: 'hand-over', rejoins: true }));
      return noAnswer;
    });
    return merge(answers$, handOvers$);
  }

  #input(each: Input): void {
    const [running, inputs] = [this.#running, this.#inputs];
    // An effect can cause the next input before the other effects are done. The loop handles both.
    if (inputs.push(each) > 1) return;
    for (const next of inputs) if (!running.closed) this.#handle(next);
    inputs.length = 0;
    if (running.closed) return;
    clearTimeout(this.#timer);
    const waitMs = Math.max(0, Math.ceil(nextTick(this.#election) - performance.now()));
    if (waitMs !== Infinity) this.#timer = setTimeout(() => this.#input({ type: 'tick' }), clampMs(waitMs));
    this.#reportStatus();
  }

  #handle(each: Input): void {
    const channel = this.#channel;
    const followed = channel.follower.emitted;
    const clock = { now: performance.now(), wall: Date.now(), random: Math.random(), followed };
    const { state, effects } = step(this.#election, each, clock);
    this.#election = state;
    channel.report(reportOf(state), isServing(state), ownerOf(state)?.changes.at(-1)?.cause === 'hand-over');
    this.#elections$.next(state);
    // An effect, or the engine, can end the replica.
    for (const effect of effects) if (!this.#running.closed) this.#perform(effect);
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
      case 'stop-notice':
        return publish(subjects.notices, effect);
      case 'open':
      case 'allow':
      case 'close':
        return run[effect.type]();
      case 'end':
        return channel.end(effect.gen);
      case 'fail':
        if (effect.other)
          return this.#end(misfit(this.#settings.account, effect.other, this.#election.settings.source));
        return this.#end(effect.isReplaced ? replacedAt() : run.failure);
      case 'left':
        return this.#leave();
    }
  }

  async #call(effect: EffectOf<'read' | 'write'>): Promise<void> {
    const unknown: CallResult = { type: 'unknown' };
    const access = () => accessKey(this.#settings.engine, this.#subjects.key, effect);
    const result = await this.#faults.during(effect.type, access, timing.callMs, unreadableKey).catch(() => unknown);
    this.#input({ type: 'call', id: effect.id, result });
  }

  async #ask({ id, question }: EffectOf<'ask'>): Promise<void> {
    const { engineAskMs } = timing;
    const request = () => this.#settings.engine.request(this.#subjects.owner, writeControl(question), engineAskMs);
    // To the election, a failure is an unanswered question.
    const reply = await this.#faults.during('request', request, engineAskMs * 0.9).catch(() => undefined);
    const report = reply?.type === 'reply' ? readReport(reply.data) : undefined;
    const result = reply?.type === 'no-responders' ? reply.type : (report ?? 'no-answer');
    this.#input({ type: 'ask', id, result });
  }

  #reportStatus(): void {
    const next = statusOf(this.#election, this.#run.failure, this.#faults.current, this.#status);
    if (next === this.#status) return;
    this.#status = next;
    this.#handlers.status(next);
  }

  #connectionChanged(isConnected: boolean): void {
    if (isConnected) this.#faults.worked('connect');
    else this.#faults.failed('connect', undefined);
    if (isConnected === this.#isConnected) return;
    const hasStarted = this.#isConnected !== undefined;
    this.#isConnected = isConnected;
    this.#input(hasStarted ? { type: 'engine', isConnected } : { type: 'start', isConnected });
    this.#channel.connected(isConnected, !hasFeed(this.#election));
  }

  #leave(): void {
    this.#channel.flush();
    this.#left$.complete();
    if (this.#isClosing) this.#running.unsubscribe();
  }

  #end(reason: unknown): void {
    if (this.#running.closed) return;
    const error = this.#sinceComplete(reason);
    this.#left$.complete();
    this.#run.close();
    this.#reportStatus();
    if (error instanceof TradeFeedError) this.#handlers.event({ type: 'stopped', at: Date.now(), failure: error });
    this.#running.unsubscribe();
    this.#handlers.error(error);
  }

  /** What is missing since the stream was complete doesn't follow, so the outage begins then. */
  #sinceComplete(error: unknown): unknown {
    const { complete } = this.#channel.follower.line ?? {};
    const isLater = error instanceof TradeFeedError && error.stage === 'stream' && complete !== undefined;
    return isLater && complete < error.endedAt ? copyFailure(error, { endedAt: complete }) : error;
  }

  #release(): void {
    clearTimeout(this.#timer);
    this.#run.close();
    this.#channel.close();
    this.#faults.close();
  }
}

// A healthy owner rewrites its key at once, so that isn't a lasting fault.
const unreadableKey = ({ type }: CallResult): Error | undefined =>
  type === 'unreadable' ? new Error("its value isn't a key of this version") : undefined;
