import { from, lastValueFrom, toArray } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';
import { type ClusterOptions, createFeedCluster, memoryEngine } from '../../../src/cluster/index.js';
import {
  type AccumulatedWindow,
  type Feed,
  type FeedEvent,
  type TradeFeedError,
  tumblingWindow,
} from '../../../src/index.js';
import type { ClusterEvent } from '../../../src/protocol/event.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { waitFor } from '../../support/wait-for.js';
import { cutEngine } from './cut-engine.js';

/** A short lease. The intervals between messages aren't options. */
export const shortTimes = { leaseMs: 900, renewMs: 150, marginMs: 150, suspectMs: 780 };
/** A lease that only suits a single replica. */
export const shortestTimes = { leaseMs: 300, renewMs: 100, marginMs: 50, suspectMs: 260 };

/** A replica of a test, with everything that it emits. */
export type TestReplica = ReturnType<typeof startReplica>;

const startReplica = (
  name: string,
  feed: Feed,
  { engine, hasStore }: { readonly engine: ClusterEngine; readonly hasStore: boolean },
  options: Omit<ClusterOptions, 'engine'>,
) => {
  const link = cutEngine(engine, hasStore);
  const cluster = createFeedCluster(feed, { replica: name, suspectMs: 300, engine: link, ...options });
  const events: (FeedEvent | ClusterEvent)[] = [];
  let error: TradeFeedError | undefined;
  const subscription = cluster.events$.subscribe({
    next: (event) => events.push(event),
    error: (thrown: TradeFeedError) => {
      error = thrown;
    },
  });
  return {
    ...{ name, cluster, engine: link, events },
    texts: () => events.flatMap((event) => (event.type === 'frame' ? [event.text()] : [])),
    error: () => error,
    unsubscribe: () => subscription.unsubscribe(),
    /** Ends the replica like `kill -9`: it can't notify the others. */
    kill: () => {
      // A leaving replica still needs the engine.
      if (subscription.closed) return;
      link.cut();
      subscription.unsubscribe();
    },
  };
};

/** Windows of 10 ms, with the texts of their frames. */
const windows = tumblingWindow<FeedEvent | ClusterEvent, readonly string[]>({
  lengthMs: 10,
  seed: () => [],
  add: (before, each) => [...before, each.text()],
});

/** Returns the windows of what a replica has emitted. */
export const windowsOf = ({ events }: TestReplica) => lastValueFrom(from(events).pipe(windows, toArray()));

/** Returns the windows of a replica from now on, as they come. */
export const windowsFrom = ({ cluster }: TestReplica) => {
  const live: AccumulatedWindow<readonly string[]>[] = [];
  cluster.events$.pipe(windows).subscribe({ next: (window) => live.push(window), error: () => undefined });
  return live;
};

/** Replicas of one account, and the service. */
export type TestCluster = Awaited<ReturnType<typeof startTestCluster>>;

/**
 * Starts the local service, and an account whose replicas share an engine: one in memory, unless you pass another.
 * Without its store, what a replica misses is lost.
 */
export const startTestCluster = async (engine: ClusterEngine = memoryEngine(), hasStore = false) => {
  const service = await startTradeFeedService();
  const account = service.createAccount({ plan: 'developer' });
  const apiKey = account.createApiKey();
  const replicas: TestReplica[] = [];

  const start = (name: string, options: Partial<ClusterOptions> = {}, feed: Feed = 'market'): TestReplica => {
    const defaults = { baseUrl: service.baseUrl, apiKey, account: 'main' };
    const replica = startReplica(name, feed, { engine, hasStore }, { ...defaults, ...options });
    replicas.push(replica);
    return replica;
  };

  /** Waits until a replica has an open connection, and the others follow it. */
  const owner = (...expected: readonly TestReplica[]): Promise<TestReplica> =>
    waitFor(
      () => {
        const owner = expected.find(({ cluster }) => cluster.status.role === 'owning');
        const isOpen = owner?.events.some(({ type }) => type === 'opened');
        const generation = owner?.cluster.status.generation;
        const areReady = expected.every(
          ({ cluster, events }) =>
            cluster.status.generation === generation && events.some(({ type }) => type === 'opened'),
        );
        return isOpen && areReady ? owner : undefined;
      },
      { what: () => `an owner: ${JSON.stringify(expected.map(({ cluster }) => cluster.status))}` },
    );

  return {
    ...{ engine, service, account, apiKey, start, owner },
    /** Starts a replica, and waits until it owns the connection. */
    startOwner: (name: string, options?: Partial<ClusterOptions>) => owner(start(name, options)),
    push: (...texts: readonly string[]) => texts.forEach((text) => service.push('market', text)),
    [Symbol.asyncDispose]: async () => {
      for (const replica of replicas) replica.kill();
      await service.shutdown();
    },
  };
};
