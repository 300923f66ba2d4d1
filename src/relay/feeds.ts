import {
  AsyncSubject,
  concat,
  defer,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  NEVER,
  Observable,
  type SchedulerAction,
  type SchedulerLike,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { shareIn } from '../operators/items/async-context.js';
import { fanOut } from '../operators/share-feed.js';
import { clampMs } from '../protocol/validate.js';
import type { EventLog } from './event-log.js';
import { RelayFullError } from './refusals.js';
import type { RelaySettings } from './relay-options.js';
import type { RelayHub } from './hub.js';
import { Pages } from './pages.js';
import { RelayRun } from './relay-run.js';
import { type RelaySource, SharedSource } from './shared-source.js';
import { type RelayTopic, topic$, type TopicEvent } from './topic.js';

/** A topic; `undefined` is the complete feed. */
type Topic = RelayTopic | undefined;

/** A run that clients join. Subscribes to its source from the first client until `lingerMs` after the last one. */
export interface LiveRun {
  readonly topic: Topic;
  readonly run: RelayRun;
  readonly pages: Pages;
  /** Subscribes to the source, once for all subscribers. Emits nothing. */
  readonly kept$: Observable<never>;
  /** Makes new clients join another run, and releases this one with its last client. */
  readonly detach: () => void;
}

/** The runs of a relay: one for the complete feed, and one per topic, whose source is piped through its operator. */
export class Feeds {
  readonly #source: SharedSource;
  readonly #settings: RelaySettings;
  readonly #hub: RelayHub;
  readonly #closed = new AsyncSubject<void>();
  /** The runs that new clients join. */
  readonly #current = new Map<Topic, LiveRun>();
  /** All runs that store events, including former ones that still have clients. */
  readonly #stored = new Set<LiveRun>();

  constructor(source: RelaySource, settings: RelaySettings, hub: RelayHub) {
    const onStop = (error: unknown) => hub.report({ type: 'source-stopped', error });
    this.#source = new SharedSource(source, settings.scheduler, onStop);
    this.#settings = settings;
    this.#hub = hub;
  }

  /** The topics that store events, not counting the complete feed. */
  get topics(): ReadonlySet<RelayTopic> {
    return new Set([...this.#stored].flatMap(({ topic }) => topic ?? []));
  }

  get stored(): { readonly events: number; readonly bytes: number } {
    const sum = (size: (log: EventLog) => number) =>
      [...this.#stored].reduce((total, { run }) => total + size(run.log), 0);
    return { events: sum((log) => log.size), bytes: sum((log) => log.bytes) };
  }

  /**
   * Returns the run of a topic for a joining client.
   *
   * @throws RelayFullError when there are `maxTopics`
   */
  join(topic: Topic): LiveRun {
    const current = this.#current.get(topic);
    if (current !== undefined) return current;
    const { maxTopics, scheduler, cluster = this.#source } = this.#settings;
    if (topic === undefined) return this.#begin(topic, this.#source.events$, cluster);
    const { topics } = this;
    if (!topics.has(topic) && topics.size >= maxTopics)
      throw new RelayFullError(`There are ${maxTopics} topics. Retry later.`, 'topics');
    return this.#begin(
      topic,
      topic$(topic, this.#source, () => scheduler.now()),
    );
  }

  /** Makes the next client of an ended run start a new one. Current clients read theirs to its end. */
  restart(): void {
    this.#source.restart();
    for (const { run, detach } of this.#current.values()) if (run.ended !== undefined) detach();
  }

  /** Ends the subscription to the source. Current clients can still read the stored events. */
  close(): void {
    finish(this.#closed);
  }

  #begin(topic: Topic, source$: Observable<TopicEvent>, cluster?: RelaySettings['cluster']): LiveRun {
    const { lingerMs, scheduler } = this.#settings;
    // The operator of a topic has no past.
    const log = topic === undefined ? this.#settings.log : undefined;
    const run = new RelayRun({ ...this.#settings, cluster, log });
    const pages = new Pages(run, this.#hub);
    const detached = new AsyncSubject<void>();
    const detach = () => {
      if (this.#current.get(topic) === live) this.#current.delete(topic);
      finish(detached);
    };
    const lingered$ = timer(clampMs(lingerMs), scheduler);
    // An ended source isn't subscribed to again, or each reloading page would evict another client of the account. An
    // ended topic does run again, even if clients keep joining.
    const stays = () => topic === undefined && run.ended !== undefined;
    const expired$ = topic === undefined ? NEVER : lingered$.pipe(tap(detach), ignoreElements());
    const kept$ = defer(() => {
      this.#stored.add(live);
      return concat(this.#logged$(live, source$).pipe(takeUntil(this.#closed)), expired$, NEVER);
    }).pipe(
      finalize(() => {
        this.#stored.delete(live);
        detach();
      }),
      shareIn<never>(this.#hub.home, {
        connector: fanOut,
        resetOnRefCountZero: () =>
          merge(this.#closed, detached, stays() ? NEVER : lingered$.pipe(filter(() => !stays()))),
      }),
    );
    const live: LiveRun = { topic, run, pages, kept$, detach };
    this.#current.set(topic, live);
    return live;
  }

  /** Logs the events of a source, and sends them every `batchMs` while they arrive. */
  #logged$({ topic, run, pages }: LiveRun, source$: Observable<TopicEvent>): Observable<never> {
    const { batchMs, scheduler } = this.#settings;
    const stop = (error: unknown): void => {
      const { failure } = this.#source;
      const isOfSource = failure !== undefined && failure.error === error;
      // An operator's error is private, even a `TradeFeedError`.
      run.stop(isOfSource || topic === undefined ? error : undefined);
      // The source reports its own error, once for all runs.
      if (!isOfSource) this.#hub.report({ type: topic === undefined ? 'source-stopped' : 'topic-stopped', error });
    };
    return source$.pipe(
      map((event) => run.append(event)),
      batched(clampMs(batchMs), scheduler, { send: () => pages.send(), stop, complete: () => run.complete() }),
    );
  }
}

interface Batched {
  readonly send: () => void;
  readonly stop: (error: unknown) => void;
  readonly complete: () => void;
}

/**
 * Calls `send` every `ms` while values arrive, and completes `ms` after the end. `auditTime` allocates more per batch
 * and `catchError` would cost a call per frame. Starting a timer costs more than the batch, so it runs until none is
 * due.
 */
const batched =
  (ms: number, scheduler: SchedulerLike, { send, stop, complete }: Batched) =>
  (source: Observable<unknown>): Observable<never> =>
    new Observable((subscriber) => {
      let [isTicking, isDue, hasEnded] = [false, false, false];
      let timer: SchedulerAction<void> | undefined;
      const tick = (action: SchedulerAction<void>): void => {
        timer = action;
        isTicking = isDue;
        if (!isDue) return;
        isDue = false;
        send();
        if (hasEnded) subscriber.complete();
        else action.schedule(undefined, ms);
      };
      const due = (): void => {
        isDue = true;
        if (isTicking) return;
        isTicking = true;
        if (timer !== undefined) timer.schedule(undefined, ms);
        else
          subscriber.add(
            scheduler.schedule(function () {
              tick(this);
            }, ms),
          );
      };
      const end = (record: () => void): void => {
        record();
        hasEnded = true;
        due();
      };
      const error = (thrown: unknown) => end(() => stop(thrown));
      subscriber.add(source.subscribe({ next: due, error, complete: () => end(complete) }));
    });

const finish = (subject: AsyncSubject<void>): void => {
  subject.next();
  subject.complete();
};
