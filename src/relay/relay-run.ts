import { randomBytes } from 'node:crypto';
import {
  AsyncSubject,
  concat,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  merge,
  NEVER,
  Observable,
  of,
  type SchedulerAction,
  type SchedulerLike,
  share,
  Subscription,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { SourceError } from '../operators/items/item.js';
import { fanOut } from '../operators/share-feed.js';
import { writeEventLine } from '../protocol/event-line.js';
import { type ClusterEvent, isClusterEvent, isRelayedValue, type RelayedEvent } from '../protocol/event.js';
import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { snapshotSince } from '../protocol/feed-state.js';
import { formatEventId, LogPositions } from '../protocol/position.js';
import { clampMs } from '../protocol/validate.js';
import { type Batch, EventLog, FollowedSource, type Position } from './event-log.js';
import { publicFailure, publicJson } from './public-json.js';
import { minRetryMs, RelayFullError } from './refusals.js';
import { dataFields, MessageBlock, messageOfFields, type RelayMessage } from './relay-message.js';
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
  readonly #block = new MessageBlock();

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
    const last = watermark === -Infinity ? '' : dataFields(withWatermark('', watermark));
    const message = messageOfFields(this.#block, this.idAt(end, reachedWith(batch)), fields, last);
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

/** The source of a relay. It may also emit the values of another relay. */
type RelaySource = Observable<RelayedEvent | ClusterEvent>;

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

  constructor(source: RelaySource, settings: RelaySettings, report: (event: Report) => void) {
    const positions = new LogPositions();
    this.#settings = { ...settings, cluster: settings.cluster ?? positions };
    this.#source = shareSource(source, positions, settings.scheduler, (error) =>
      report({ type: 'source-stopped', error }),
    );
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

  /**
   * Logs the events of a source. Emits every `batchMs` while events arrive, and completes `batchMs` after the end.
   *
   * One operator instead of several, because it runs for each frame: `map`, `catchError` and `auditTime` would cost
   * more than storing the frame does. The timer goes on until nothing arrives, because starting one costs more still.
   */
  #logged$({ topic, run }: LiveRun, source$: Observable<TopicEvent>): Observable<void> {
    const { batchMs, scheduler } = this.#settings;
    return new Observable((subscriber) => {
      let [isTicking, isDue, hasEnded] = [false, false, false];
      const tick = (action: SchedulerAction<void>): void => {
        isTicking = isDue;
        if (!isDue) return;
        isDue = false;
        subscriber.next();
        if (hasEnded) subscriber.complete();
        else action.schedule(undefined, clampMs(batchMs));
      };
      const due = (): void => {
        isDue = true;
        if (isTicking) return;
        isTicking = true;
        subscriber.add(
          scheduler.schedule(function () {
            tick(this);
          }, clampMs(batchMs)),
        );
      };
      const end = (record: () => void): void => {
        if (hasEnded) return;
        hasEnded = true;
        record();
        due();
      };
      const stop = (error: unknown) => end(() => this.#stop(topic, run, error));
      const events = new Subscription();
      subscriber.add(events);
      events.add(
        source$.subscribe({
          next: (event) => {
            if (hasEnded) return;
            try {
              run.append(event);
              due();
            } catch (error) {
              events.unsubscribe();
              stop(error);
            }
          },
          error: stop,
          complete: () => end(() => run.complete()),
        }),
      );
    });
  }

  #stop(topic: Topic, run: RelayRun, error: unknown): void {
    const isOfSource = this.#source.hasFailedWith(error);
    // An operator's error is private, even a `TradeFeedError`.
    run.stop(isOfSource || topic === undefined ? error : undefined);
    // The source reports its own error, once for all runs.
    if (!isOfSource) this.#report({ type: topic === undefined ? 'source-stopped' : 'topic-stopped', error });
  }
}

const finish = (subject: AsyncSubject<void>): void => {
  subject.next();
  subject.complete();
};

/** Shares a source between the complete feed and all topics. Subscribes to an ended source only after `restart`. */
const shareSource = (
  source: RelaySource,
  positions: LogPositions,
  scheduler: SchedulerLike,
  onStop: (error: unknown) => void,
) => {
  const created = (): Connection => ({ followed: new FollowedSource({ scheduler }), end: undefined });
  let connection = created();
  const follow = (event: RelayedEvent | ClusterEvent): event is RelayedEvent => {
    positions.receive(event);
    if (isClusterEvent(event)) return false;
    connection.followed.receive(event);
    return true;
  };
  const shared$: Observable<RelayedEvent> = defer(() => {
    const own = (connection = created());
    return source.pipe(
      filter(follow),
      // Calls `onStop` after the subscribers have received the error, because it may call `restart`.
      finalize(() => {
        if (own.end === undefined) connection = created();
        else if (own.end !== 'complete') onStop(own.end.error);
      }),
    );
  }).pipe(
    share<RelayedEvent>({
      connector: fanOut,
      // Called before the subscribers receive the end. `tap` would cost a call for each frame.
      resetOnError: (error: unknown) => ((connection.end = { error }), of(true)),
      resetOnComplete: () => ((connection.end = 'complete'), of(true)),
    }),
  );
  const current = (): readonly RelayedEvent[] => {
    const { time, state } = connection.followed;
    // When the source sends watermarks, a frame may be later than the last one.
    const events = snapshotSince(state.events, Math.max(time.newestAt, time.now()));
    return state.watermark === undefined ? events : [...events, { type: 'watermark', at: state.watermark }];
  };
  return {
    // Late subscribers first receive the state of the feed. `merge` would cost each frame two calls.
    events$: new Observable<RelayedEvent>((subscriber) => {
      for (const event of current()) subscriber.next(event);
      const { end } = connection;
      return (end === undefined ? shared$ : ended$(end)).subscribe(subscriber);
    }),
    restart: () => {
      if (connection.end !== undefined) connection = created();
    },
    hasFailedWith: (error: unknown) => typeof connection.end === 'object' && connection.end.error === error,
  };
};

const ended$ = (end: SourceError | 'complete') => (end === 'complete' ? EMPTY : throwError(() => end.error));

/** A subscription to the source: its state so far, and how it ended. */
interface Connection {
  readonly followed: FollowedSource;
  end: SourceError | 'complete' | undefined;
}
