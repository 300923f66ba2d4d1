import { concat, EMPTY, NEVER, noop, type Observable, ReplaySubject, Subject, takeUntil } from 'rxjs';
import { type ClusterEngine, createFeedCluster, memoryEngine } from '../../cluster/index.js';
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
      const killed = new Subject<void>();
      const cluster = createFeedCluster(feed, {
        ...{ ...options, engine: cutAfter(engine, killed), account: demoAccount, replica },
      });
      // The demo subscribes when it has drawn the replica.
      const events = new ReplaySubject<ReplicaEvent>(1_000);
      const subscription = cluster.events$.subscribe({ next: (event) => events.next(event), error: () => end() });
      const end = (): void => {
        running.delete(end);
        subscription.unsubscribe();
        events.complete();
      };
      running.add(end);
      return {
        events$: events,
        kill: () => {
          killed.next();
          killed.complete();
          end();
        },
        stop: () => void cluster.handOver().then(end),
      };
    },
    state: () => readClusterState(engine, demoAccount, 0),
    handOver: () => requestHandOver(engine, demoAccount),
    close: async () => {
      for (const end of running) end();
      return Promise.resolve();
    },
  };
};

/** Returns an engine that works until `killed$` emits. */
const cutAfter = (engine: ClusterEngine, killed$: Observable<void>): ClusterEngine => {
  let isCut = false;
  killed$.subscribe({ next: () => (isCut = true), error: noop });
  const alive = <T>(use: () => Promise<T>): Promise<T> => (isCut ? Promise.reject(new Error('killed')) : use());
  return {
    connected$: concat(engine.connected$.pipe(takeUntil(killed$)), [false], NEVER),
    read: (key) => alive(() => engine.read(key)),
    compareAndSet: (key, value, expected) => alive(() => engine.compareAndSet(key, value, expected)),
    publish: (subject, data) => {
      if (!isCut) engine.publish(subject, data);
    },
    subscribe: (subject) => (isCut ? EMPTY : engine.subscribe(subject).pipe(takeUntil(killed$))),
    request: (subject, data, timeoutMs) => alive(() => engine.request(subject, data, timeoutMs)),
    respond: (subject, answer) => (isCut ? EMPTY : engine.respond(subject, answer).pipe(takeUntil(killed$))),
  };
};
