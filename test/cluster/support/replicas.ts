import type { Subscription } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';
import { type ClusterOptions, createFeedCluster, type FeedCluster, memoryEngine } from '../../../src/cluster/index.js';
import type { Feed, FeedEvent, TradeFeedError } from '../../../src/index.js';
import type { ClusterEvent } from '../../../src/protocol/event.js';
import { startTradeFeedService, type TradeFeedAccount, type TradeFeedService } from '../../../src/testing/index.js';
import { waitFor } from '../../support/wait-for.js';
import { type CutEngine, cutEngine } from './cut-engine.js';

/** A replica of a test, with everything that it emits. */
export interface TestReplica {
  readonly name: string;
  readonly cluster: FeedCluster;
  readonly engine: CutEngine;
  readonly events: (FeedEvent | ClusterEvent)[];
  readonly texts: () => readonly string[];
  readonly error: () => TradeFeedError | undefined;
  readonly unsubscribe: () => void;
  /** Ends the replica like `kill -9`: it can't notify the others. */
  readonly kill: () => void;
}

/** A short lease. The intervals between messages aren't options. */
export const shortTimes = { leaseMs: 900, renewMs: 150, marginMs: 150, suspectMs: 780 };
/** A lease that only suits a single replica. */
export const shortestTimes = { leaseMs: 300, renewMs: 100, marginMs: 50, suspectMs: 260 };

/** Replicas of one account, and the service. */
export interface TestCluster extends AsyncDisposable {
  readonly engine: ClusterEngine;
  readonly service: TradeFeedService;
  readonly account: TradeFeedAccount;
  readonly apiKey: string;
  readonly start: (name: string, options?: Partial<ClusterOptions>, feed?: Feed) => TestReplica;
  /** Starts a replica, and waits until it owns the connection. */
  readonly startOwner: (name: string, options?: Partial<ClusterOptions>) => Promise<TestReplica>;
  /** Waits until a replica has an open connection, and the others follow it. */
  readonly owner: (...replicas: readonly TestReplica[]) => Promise<TestReplica>;
  /** Pushes texts, one for each number, until all replicas have received the last one. */
  readonly push: (...texts: readonly string[]) => void;
}

/** Starts the local service, and an account whose replicas share an engine: one in memory, unless you pass another. */
export const startTestCluster = async (engine: ClusterEngine = memoryEngine()): Promise<TestCluster> => {
  const service = await startTradeFeedService();
  const account = service.createAccount({ plan: 'developer' });
  const apiKey = account.createApiKey();
  const replicas: TestReplica[] = [];

  const start = (name: string, options: Partial<ClusterOptions> = {}, feed: Feed = 'market'): TestReplica => {
    const link = cutEngine(engine);
    const cluster = createFeedCluster(feed, {
      ...{ baseUrl: service.baseUrl, apiKey, engine: link, account: 'main', replica: name, suspectMs: 300 },
      ...options,
    });
    const events: (FeedEvent | ClusterEvent)[] = [];
    let error: TradeFeedError | undefined;
    const subscription: Subscription = cluster.events$.subscribe({
      next: (event) => events.push(event),
      error: (thrown: TradeFeedError) => {
        error = thrown;
      },
    });
    const replica: TestReplica = {
      ...{ name, cluster, engine: link, events },
      texts: () => events.flatMap((event) => (event.type === 'frame' ? [event.text()] : [])),
      error: () => error,
      unsubscribe: () => subscription.unsubscribe(),
      kill: () => {
        // A leaving replica still needs the engine.
        if (subscription.closed) return;
        link.cut('refused');
        subscription.unsubscribe();
      },
    };
    replicas.push(replica);
    return replica;
  };

  const owner: TestCluster['owner'] = (...expected) =>
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
    startOwner: (name, options) => owner(start(name, options)),
    push: (...texts) => texts.forEach((text) => service.push('market', text)),
    [Symbol.asyncDispose]: async () => {
      for (const replica of replicas) replica.kill();
      await service.shutdown();
    },
  };
};
