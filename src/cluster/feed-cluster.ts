import { BehaviorSubject, filter, Observable, share } from 'rxjs';
import { callPlace } from '../accounts/call-place.js';
import type { Feed } from '../protocol/feed.js';
import { debugLog } from '../diagnostics/debug-log.js';
import { publishEvents } from '../diagnostics/lifecycle-channels.js';
import { checkFeed } from '../protocol/feed-names.js';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import type { FeedPosition, PositionedFeed } from '../protocol/feed-position.js';
import type { Frame } from '../protocol/frame.js';
import { type ClusterOptions, resolveClusterOptions } from './cluster-options.js';
import type { ClusterStatus } from './cluster-status.js';
import { resumeCluster } from './operate.js';
import { type Replica, startReplica } from './replica.js';

/** A feed that any number of processes share, although the account has one connection. */
export interface FeedCluster extends PositionedFeed {
  /**
   * Emits the frames and events of the feed, whichever replica owns the connection. Hot while there is a subscriber: all subscribers share this
   * replica. Errors with a `TradeFeedError`: `connection-replaced` if a client outside the cluster replaced the connection. A subscription after
   * that errors again until {@link FeedCluster.resume} was called. Errors with the error of the engine if that refuses a subscription.
   */
  readonly events$: Observable<FeedEvent | OwnerChanged>;
  /** Emits the frames of `events$`. */
  readonly frames$: Observable<Frame>;
  readonly status: ClusterStatus;
  /** Emits the status at once, and each change. Does not complete. */
  readonly status$: Observable<ClusterStatus>;
  /**
   * Gives the ownership away, for a shutdown. Resolves when another replica has it, or when there is no other one, at most after `handOverMs`.
   * This replica then follows until its subscribers unsubscribe.
   */
  handOver(): Promise<void>;
  /**
   * Allows the replicas to connect again, after a client outside the cluster replaced the connection. Does nothing if the cluster has not
   * stopped. Subscribe to `events$` afterwards. Rejects if the engine cannot be reached.
   */
  resume(): Promise<void>;
}

/**
 * Creates a replica of a cluster: the replicas elect one owner, which holds the connection to the service, and the others receive its frames.
 *
 * Nothing happens before `events$` or `frames$` has a subscriber. All replicas need the same `account`, feed and service, and engines that
 * reach the same store. A change of the owner is a `gap` with the code `owner-changed`; messages that did not arrive are one with the code
 * `cluster-behind` and the number of `missed` frames.
 *
 * @param feed - `market` or `raw`
 * @param options - see {@link ClusterOptions}; durations in ms
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
 *
 * const cluster = createFeedCluster('market', { engine: memoryEngine(), account: 'main' });
 * cluster.frames$.subscribe((frame) => console.log(frame.text()));
 * process.once('SIGTERM', () => void cluster.handOver().then(() => process.exit()));
 * ```
 */
export const createFeedCluster = (feed: Feed, options: ClusterOptions): FeedCluster => {
  checkFeed(feed);
  const settings = resolveClusterOptions(options);
  const where = `createFeedCluster('${feed}') at ${callPlace()}`;
  const status = new BehaviorSubject<ClusterStatus>({
    ...{ role: 'left', replica: settings.replica, owner: undefined, generation: 0, since: Date.now() },
  });
  const origin = { feed, baseUrl: settings.feed.baseUrl, where };
  // The feed of the owner reports all other events.
  const listeners = [debugLog(origin), publishEvents(origin)];
  let replica: Replica | undefined;

  const events$ = new Observable<FeedEvent | OwnerChanged>((subscriber) => {
    const started = startReplica(feed, settings, where, {
      event: (event) => {
        if (event.type === 'owner-changed') for (const listener of listeners) listener(event);
        subscriber.next(event);
      },
      error: (error) => subscriber.error(error),
      status: (next) => status.next(next),
    });
    // The engine can refuse a subscription at once, and the error can start another replica.
    if (!subscriber.closed) replica = started;
    return () => {
      if (replica === started) replica = undefined;
      if (status.value.role !== 'stopped') status.next({ ...status.value, role: 'left', owner: undefined });
      started.close();
    };
  }).pipe(share());

  return {
    events$,
    frames$: events$.pipe(filter((event): event is Frame => event.type === 'frame')),
    status$: status.asObservable(),
    get status() {
      return status.value;
    },
    get position(): FeedPosition | undefined {
      return replica?.position;
    },
    handOver: async () => replica?.handOver(),
    resume: async () => {
      await resumeCluster(settings.engine, settings.account);
    },
  };
};
