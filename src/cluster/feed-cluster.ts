import { BehaviorSubject, filter, map, Observable, type OperatorFunction } from 'rxjs';
import { type AccountUser, callPlace } from '../feed/accounts.js';
import { showEvents } from '../feed/diagnostics.js';
import { contextHere, inOwnContext, runIn, shareIn } from '../operators/items/async-context.js';
import { FeedFollower } from '../operators/items/follow-feed.js';
import { fanOut } from '../operators/share-feed.js';
import type { ClusterEvent, FeedEvent, Watermark } from '../protocol/event.js';
import type { LogEntry } from '../protocol/event-record.js';
import { checkFeed } from '../protocol/contract.js';
import type { PositionedFeed, StoredLine } from '../protocol/place.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { type ClusterOptions, resolveClusterOptions } from './cluster-options.js';
import { resumeCluster } from './operate.js';
import { Replica } from './replica.js';
import { type ClusterStatus, type ElectionStatus, firstStatus, leftStatus } from './status.js';
import { storedRecords } from './stored-records.js';
import { whileOwner } from './while-owner.js';

/** Shares one feed between any number of processes, although the account gets a single connection. */
export interface FeedCluster extends PositionedFeed, StoredLine {
  readonly feed: Feed;
  /**
   * Emits the frames and events of the feed, whichever replica owns the connection. Hot while there's a subscriber: all
   * subscribers share this replica. Errors with a `TradeFeedError`: `connection-replaced` if a client outside the
   * cluster replaced the connection. Later subscriptions error as well until {@link FeedCluster.resume} is called.
   * `engine-refused` if the engine refuses a subscription; `engine-closed` if its connection was closed for good.
   */
  readonly events$: Observable<FeedEvent | ClusterEvent>;
  /** Emits the frames of `events$`. */
  readonly frames$: Observable<Frame>;
  readonly status: ClusterStatus;
  /** Emits the status at once, and each change. Never completes. */
  readonly status$: Observable<ClusterStatus>;
  /**
   * Runs an operator on the frames and events of the feed while this replica owns the connection, and emits what it
   * emits. When another replica takes over, its operator goes on, so only one runs at a time: `append` of a log, for
   * example, keeps each frame once.
   *
   * Each time this replica owns, it subscribes anew: `operator` begins with the first event of that time, which is
   * `owner-changed` if another replica owned before. It unsubscribes when another one owns, or when the connection has
   * ended. Completes never, also if the operator does. Errors with what the operator errors with, except that it tries
   * for 2 s to subscribe to a log whose previous writer still closes (`log-in-use`), while events wait. Errors with a
   * `LogError` with the code `log-fenced` if this process stood still so long that another replica may own; what
   * arrives then is dropped. Subscribe again: it goes on when it owns the next time.
   *
   * @throws TradeFeedError with code `invalid-options`, from the call itself, if it's no function
   * @param operator - for example `log.append()`: of a folder if all replicas run on one machine, otherwise of a log on
   *   a server that they share
   * @example
   * ```ts
   * import { retry, tap } from 'rxjs';
   * import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
   * import { feedLog } from 'rx-trade-feed/log';
   *
   * const cluster = createFeedCluster('market', {
   *   engine: memoryEngine(),
   *   account: 'main',
   * });
   * cluster.frames$.subscribe();
   * cluster
   *   .whileOwner(feedLog('./market').append())
   *   .pipe(tap({ error: console.error }), retry({ delay: 1_000 }))
   *   .subscribe();
   * ```
   */
  whileOwner<R>(operator: OperatorFunction<FeedEvent | ClusterEvent, R>): Observable<R>;
  /**
   * Gives the ownership away before a shutdown. Resolves when another replica has it, or when there's no other one, at
   * most after `handOverMs`. This replica then follows until its subscribers unsubscribe.
   */
  handOver(): Promise<void>;
  /**
   * Allows the replicas to connect again after a client outside the cluster replaced the connection. Does nothing if
   * the cluster hasn't stopped. Subscribe to `events$` afterwards. Rejects if the engine is unreachable.
   */
  resume(): Promise<void>;
}

/**
 * Creates a replica of a cluster. The replicas elect one owner, which holds the connection to the service, and the
 * others receive its frames.
 *
 * Nothing happens until `events$` or `frames$` has a subscriber. All replicas need the same `account`, feed and
 * service, and engines that reach the same store. A new owner causes a `gap` with the code `owner-changed`; messages
 * that didn't arrive cause one with the code `cluster-behind` and the number of `missed` frames.
 *
 * @param feed - `market` or `raw`
 * @param options - see {@link ClusterOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
 *
 * const cluster = createFeedCluster('market', {
 *   engine: memoryEngine(),
 *   account: 'main',
 * });
 * cluster.frames$.subscribe((frame) => console.log(frame.text()));
 * process.once(
 *   'SIGTERM',
 *   () => void cluster.handOver().then(() => process.exit()),
 * );
 * ```
 */
export const createFeedCluster = (feed: Feed, options: ClusterOptions): FeedCluster =>
  clusterOf(feed, options, { where: `createFeedCluster('${feed}') at ${callPlace()}` });

/** Creates a replica like {@link createFeedCluster}, on behalf of other code in this package. */
export const clusterOf = (feed: Feed, options: ClusterOptions, user: AccountUser): FeedCluster => {
  checkFeed(feed);
  const settings = resolveClusterOptions(options);
  const home = contextHere();
  const status = new BehaviorSubject(firstStatus(settings.replica));
  const showEntry = showEvents({ feed, baseUrl: settings.feed.baseUrl, where: user.where });
  const show = (entry: LogEntry | Watermark): void => {
    if (entry.type !== 'watermark') showEntry(entry);
  };
  const counts = { fetched: 0, surplus: 0 };
  let replica: Replica | undefined;
  let followed = new FeedFollower();
  const withLine = (each: ElectionStatus): ClusterStatus => ({ ...each, line: replica?.line, ...counts });

  const shared$ = new Observable<FeedEvent | ClusterEvent>((subscriber) => {
    const started = new Replica(feed, settings, user, {
      show,
      event: (event) => {
        if (subscriber.closed) return;
        if (event.type !== 'frame') show(event);
        followed.next(event);
        subscriber.next(event);
      },
      error: (error) => subscriber.error(error),
      status: (next) => {
        if (!subscriber.closed) status.next(next);
      },
      counts,
    });
    started.start();
    // The engine can refuse a subscription at once, and the error can start another replica.
    if (!subscriber.closed) replica = started;
    return () => {
      if (replica === started) replica = undefined;
      followed = new FeedFollower();
      if (status.value.role !== 'stopped') status.next(leftStatus(status.value));
      started.close();
    };
  }).pipe(shareIn(home, { connector: () => fanOut<FeedEvent | ClusterEvent>() }));
  const events$ = new Observable<FeedEvent | ClusterEvent>((subscriber) => {
    for (const event of followed.joinedAt(Date.now())) subscriber.next(event);
    return shared$.subscribe(subscriber);
  });

  const { account, leaseMs, renewMs, marginMs } = settings;
  const generation = (): number | undefined => replica?.ownGeneration;
  const owned = { events$: shared$, account, generation, maxStallMs: leaseMs - renewMs - marginMs };

  return {
    feed,
    events$,
    frames$: events$.pipe(filter((event): event is Frame => event.type === 'frame')),
    status$: status.pipe(map(withLine), inOwnContext()),
    get status() {
      return withLine(status.value);
    },
    get position() {
      return replica?.position;
    },
    stored: storedRecords(feed, settings),
    whileOwner: (operator) => whileOwner(owned, operator),
    handOver: () => runIn(home, async () => replica?.handOver()),
    resume: () =>
      runIn(home, async () => {
        await resumeCluster(settings.engine, settings.account);
      }),
  };
};
