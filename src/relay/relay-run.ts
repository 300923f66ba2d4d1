import { randomBytes } from 'node:crypto';
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
  share,
  Subject,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { SourceError } from '../operators/items/item.js';
import { fanOut } from '../operators/share-feed.js';
import { writeEventLine } from '../protocol/event-line.js';
import { isRelayedValue, type RelayedEvent } from '../protocol/event.js';
import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { snapshotSince } from '../protocol/feed-state.js';
import { formatEventId } from '../protocol/position.js';
import { clampMs } from '../protocol/validate.js';
import { type Batch, EventLog, FollowedSource, type Position } from './event-log.js';
import { publicFailure, publicJson } from './public-json.js';
import { minRetryMs, RelayFullError } from './refusals.js';
import { dataFields, messageOfFields, type RelayMessage } from './relay-message.js';
import type { RelaySettings } from './relay-options.js';
import type { Report } from './relay-reports.js';
import { asTopic, type RelayTopic, type TopicEvent } from './topic.js';

export type RunSettings = Pick<
  RelaySettings,
  'capacity' | 'capacityBytes' | 'maxReplayBytes' | 'scheduler' | 'cluster'
>;

/** One subscription to a source, shared by all clients: the log of its events, and how it ended. */
export class RelayRun {
  /** Names the log in message ids. Positions of other logs aren't valid here. */
  readonly epoch = randomBytes(6).toString('base64url');
  readonly log: EventLog;
  /** Whether message ids are positions of a cluster. */
  readonly isInCluster: boolean;
  ended: { readonly failure?: TradeFeedError } | undefined;
  readonly #cluster: RunSettings['cluster'];
  readonly #messages = new WeakMap<Batch, RelayMessage>();

  constructor(settings: RunSettings) {
    this.log = new EventLog(settings, () => settings.scheduler.now());
    this.#cluster = settings.cluster;
    this.isInCluster = settings.cluster !== undefined;
  }

  /** Adds an event to the log. `stopped` becomes `disconnected`, because the clients reconnect. */
  append(event: TopicEvent): void {
    const shared = this.#cluster?.position;
    if (isRelayedValue(event)) this.log.append({ type: 'value', at: event.at, json: publicJson(event.value) }, shared);
    else this.log.append(event.type === 'stopped' ? { ...event, type: 'disconnected' } : event, shared);
  }

  complete(): void {
    this.log.end();
    this.ended = {};
  }

  stop(error: unknown): void {
    this.log.end();
    this.ended = { failure: publicFailure(error) };
  }

  /**
   * Returns a client's last message; `undefined` while the source is active.
   *
   * @param isLate - whether the client joined after a stop. It gets a delay, or a page would soon use up its retries
   */
  lastMessage(isLate: boolean): Pick<RelayMessage, 'type' | 'data'> | undefined {
    if (this.ended === undefined) return undefined;
    const { failure } = this.ended;
    if (failure === undefined) return { type: 'complete', data: '{}' };
    const retryAfterMs = Math.max(minRetryMs, failure.retryAfterMs ?? 0);
    return { type: 'connect-again', data: JSON.stringify(isLate ? copyFailure(failure, { retryAfterMs }) : failure) };
  }

  /** Returns the id of a position, for a client that has reached the time `at` (epoch ms). */
  idAt({ seq, frames, complete, shared }: Position, at: number): string {
    if (shared === undefined) return formatEventId(this.epoch, { seq, frames, at, complete });
    return formatEventId(shared.run, { seq: shared.sequence, frames: shared.frames, at, complete });
  }

  /** Returns the message of a batch: the same object for every client. */
  messageOf(batch: Batch): RelayMessage {
    const cached = this.#messages.get(batch);
    if (cached !== undefined) return cached;
    const { fields, end, watermark } = batch;
    const last = watermark === -Infinity ? [] : [Buffer.from(dataFields(withWatermark('', watermark)))];
    const message = messageOfFields(this.idAt(end, reachedWith(batch)), [...fields, ...last]);
    this.#messages.set(batch, message);
    return message;
  }
}

/** Returns the time a client reaches with a batch, in epoch ms. */
export const reachedWith = ({ end, watermark }: Batch): number => Math.max(end.at, watermark);

/** Appends a watermark, if there is one. Clients use it to close windows. */
export const withWatermark = (lines: string, at: number): string => {
  if (at === -Infinity) return lines;
  const watermark = writeEventLine({ type: 'watermark', at });
  return lines === '' ? watermark : `${lines}\n${watermark}`;
};

/** A topic; `undefined` is the complete feed. */
type Topic = RelayTopic | undefined;

/** A run that clients join. Subscribes to its source from the first client until `lingerMs` after the last one. */
export interface LiveRun {
  readonly topic: Topic;
  readonly run: RelayRun;
  /** Emits after new events, at most every `batchMs`. */
  readonly batches$: Observable<unknown>;
  /** Makes new clients join another run, and releases this one with its last client. */
  readonly detach: () => void;
}

/** The runs of a relay: one for the complete feed, and one per topic, whose source is piped through its operator. */
export class Feeds {
  readonly #source: ReturnType<typeof shareSource>;
  readonly #settings: RelaySettings;
  readonly #report: (event: Report) => void;
  readonly #closed = new AsyncSubject<void>();
  /** The runs that new clients join. */
  readonly #current = new Map<Topic, LiveRun>();
  /** All runs that store events, including former ones that still have clients. */
  readonly #stored = new Set<LiveRun>();

  constructor(events$: Observable<RelayedEvent>, settings: RelaySettings, report: (event: Report) => void) {
    this.#source = shareSource(events$, settings.scheduler, (error) => report({ type: 'source-stopped', error }));
    this.#settings = settings;
    this.#report = report;
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
    const { maxTopics, scheduler, cluster } = this.#settings;
    if (topic === undefined) return this.#begin(topic, this.#source.events$, cluster);
    const { topics } = this;
    if (!topics.has(topic) && topics.size >= maxTopics)
      throw new RelayFullError(`There are ${maxTopics} topics. Retry later.`, 'topics');
    return this.#begin(topic, this.#source.events$.pipe(asTopic(topic, scheduler)));
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
    const run = new RelayRun({ ...this.#settings, cluster });
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
    const batches$ = defer(() => {
      this.#stored.add(live);
      return concat(this.#logged$(live, source$).pipe(takeUntil(this.#closed)), expired$, NEVER);
    }).pipe(
      finalize(() => {
        this.#stored.delete(live);
        detach();
      }),
      share({
        connector: fanOut,
        resetOnRefCountZero: () =>
          merge(this.#closed, detached, stays() ? NEVER : lingered$.pipe(filter(() => !stays()))),
      }),
    );
    const live: LiveRun = { topic, run, batches$, detach };
    this.#current.set(topic, live);
    return live;
  }

  /** Logs the events of a source. Emits at most every `batchMs` while events arrive. */
  #logged$({ topic, run }: LiveRun, source$: Observable<TopicEvent>): Observable<void> {
    const { batchMs, scheduler } = this.#settings;
    const stop = (error: unknown): void => {
      const isOfSource = this.#source.hasFailedWith(error);
      // An operator's error is private, even a `TradeFeedError`.
      run.stop(isOfSource || topic === undefined ? error : undefined);
      // The source reports its own error, once for all runs.
      if (!isOfSource) this.#report({ type: topic === undefined ? 'source-stopped' : 'topic-stopped', error });
    };
    return source$.pipe(
      map((event) => run.append(event)),
      batched(clampMs(batchMs), scheduler, stop, () => run.complete()),
    );
  }
}

/**
 * Emits `ms` after the first value since it last emitted, and completes `ms` after the end. `auditTime` allocates more
 * per batch, and `catchError` would cost a call per frame.
 */
const batched =
  (ms: number, scheduler: SchedulerLike, onError: (error: unknown) => void, onComplete: () => void) =>
  (source: Observable<unknown>): Observable<void> =>
    new Observable((subscriber) => {
      let [isDue, hasEnded] = [false, false];
      let timer: SchedulerAction<void> | undefined;
      const emit = (action: SchedulerAction<void>): void => {
        timer = action;
        isDue = false;
        subscriber.next();
        if (hasEnded) subscriber.complete();
      };
      const start = (): void => {
        if (isDue) return;
        isDue = true;
        if (timer !== undefined) timer.schedule(undefined, ms);
        else
          subscriber.add(
            scheduler.schedule(function () {
              emit(this);
            }, ms),
          );
      };
      const end = (record: () => void): void => {
        record();
        hasEnded = true;
        start();
      };
      const observer = {
        next: start,
        error: (error: unknown) => end(() => onError(error)),
        complete: () => end(onComplete),
      };
      subscriber.add(source.subscribe(observer));
    });

const finish = (subject: AsyncSubject<void>): void => {
  subject.next();
  subject.complete();
};

/** Shares a source between the complete feed and all topics. Subscribes to an ended source only after `restart`. */
const shareSource = (source: Observable<RelayedEvent>, scheduler: SchedulerLike, onStop: (error: unknown) => void) => {
  const restarted = new Subject<void>();
  let followed = new FollowedSource({ scheduler });
  let failed: SourceError | undefined;
  const reset = () => {
    followed = new FollowedSource({ scheduler });
    failed = undefined;
  };
  const reset$ = restarted.pipe(tap(reset));
  const shared$ = defer(() => {
    let ended: SourceError | undefined;
    return source.pipe(
      tap({
        subscribe: reset,
        next: (event) => followed.receive(event),
        error: (error: unknown) => (failed = ended = { error }),
        unsubscribe: reset,
      }),
      // Calls `onStop` after the subscribers have received the error, because it may call `restart`.
      finalize(() => ended && onStop(ended.error)),
    );
  }).pipe(share({ resetOnError: () => reset$, resetOnComplete: () => reset$ }));
  const current = (): readonly RelayedEvent[] => {
    const { time, state } = followed;
    // When the source sends watermarks, a frame may be later than the last one.
    const events = snapshotSince(state.events, Math.max(time.newestAt, time.now()));
    return state.watermark === undefined ? events : [...events, { type: 'watermark', at: state.watermark }];
  };
  return {
    // Late subscribers first receive the state of the feed. `merge` would cost each frame two calls.
    events$: new Observable<RelayedEvent>((subscriber) => {
      for (const event of current()) subscriber.next(event);
      return shared$.subscribe(subscriber);
    }),
    restart: () => restarted.next(),
    hasFailedWith: (error: unknown) => failed !== undefined && failed.error === error,
  };
};
