import { BehaviorSubject, ReplaySubject } from 'rxjs';
import { createFeedCluster, memoryEngine } from '../../cluster/index.js';
import { readClusterState, requestHandOver } from '../../cluster/operate.js';
import type { Feed, TradeFeedOptions } from '../../index.js';
import { demoAccount, type DemoCluster, type ReplicaEvent } from './demo-replica.js';

/** Creates replicas in this process, over the engine in memory. */
export const localCluster = (feed: Feed, options: TradeFeedOptions): DemoCluster => {
  const engine = memoryEngine();
  const running = new Set<() => void>();
  return {
    description:
      'in one process, over the engine in memory; with nats-server or redis-server installed: one process each',
    start: (replica) => {
      const connected$ = new BehaviorSubject(true);
      const cluster = createFeedCluster(feed, {
        ...{ ...options, engine: { ...engine, connected$ }, account: demoAccount, replica },
      });
      // The demo subscribes when it has drawn the replica.
      const events = new ReplaySubject<ReplicaEvent>(1_000);
      const subscription = cluster.events$.subscribe({ next: (event) => events.next(event), error: () => end() });
      const end = (): void => {
        running.delete(kill);
        subscription.unsubscribe();
        events.complete();
      };
      const kill = (): void => {
        // A replica without the engine sends nothing when it ends.
        connected$.next(false);
        end();
      };
      running.add(kill);
      return { events$: events, kill, stop: () => void cluster.handOver().then(end) };
    },
    state: () => readClusterState(engine, demoAccount, 0),
    handOver: () => requestHandOver(engine, demoAccount),
    close: async () => {
      for (const kill of running) kill();
      return Promise.resolve();
    },
  };
};
