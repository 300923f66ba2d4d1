// Three replicas in this process share one connection to a local service. Keys end them and move the ownership.
//
//   node examples/replicas/keys.mjs
//
// 1, 2 and 3 select a replica. k kills it, s stops it (an owner gives the ownership away first), r starts it again, q ends.
import { BehaviorSubject, Subscription } from 'rxjs';
import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';

const service = await startTradeFeedService({ sources: { market: marketBatches$() } });
const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
// In production: natsEngine or redisEngine, and one replica in each process.
const engine = memoryEngine();

/** @param {string} text */
const log = (text) => console.log(`${new Date().toISOString()} ${text}`);

/** @param {string} name */
const startReplica = (name) => {
  const connected$ = new BehaviorSubject(true);
  const cluster = createFeedCluster('market', {
    ...{ baseUrl: service.baseUrl, apiKey, account: 'main', replica: name },
    engine: { ...engine, connected$ },
  });
  const tally = { name, frames: 0, gaps: 0, isRunning: true };
  const subscription = new Subscription(() => (tally.isRunning = false));
  subscription.add(
    cluster.events$.subscribe({
      next: (event) => {
        if (event.type === 'frame') tally.frames += 1;
        if (event.type === 'gap') tally.gaps += 1;
        if (event.type === 'gap') log(`${name}: a gap, ${event.failure.code}`);
        if (event.type === 'owner-changed') log(`${name}: ${event.owner} owns the connection`);
      },
      error: (error) => log(`${name} has stopped: ${error.message}`),
    }),
  );
  return {
    tally,
    /** Without the engine a replica can't say goodbye, as after kill -9. */
    kill: () => {
      connected$.next(false);
      subscription.unsubscribe();
    },
    stop: async () => {
      await cluster.handOver();
      subscription.unsubscribe();
    },
  };
};

const replicas = ['replica-1', 'replica-2', 'replica-3'].map(startReplica);
let selected = 0;

/** @type {Readonly<Record<string, () => unknown>>} */
const keys = {
  1: () => (selected = 0),
  2: () => (selected = 1),
  3: () => (selected = 2),
  k: () => replicas[selected]?.kill(),
  s: () => replicas[selected]?.stop(),
  r: () => {
    const old = replicas[selected];
    if (old && !old.tally.isRunning) replicas[selected] = startReplica(old.tally.name);
  },
};

const status = setInterval(() => {
  log(
    replicas
      .map(({ tally: { name, frames, gaps, isRunning } }, n) => {
        const mark = n === selected ? '▶ ' : '';
        return `${mark}${name}: ${isRunning ? `${frames} frames, ${gaps} gaps` : 'is down'}`;
      })
      .join('; '),
  );
}, 1_000);

process.stdin.setRawMode?.(true);
reading: for await (const typed of process.stdin.setEncoding('utf8')) {
  for (const key of typed) {
    if (key === 'q' || key === '\x03') break reading;
    if (Object.hasOwn(keys, key)) log(`key ${key}`);
    await keys[key]?.();
  }
}
process.stdin.setRawMode?.(false);
clearInterval(status);
for (const { kill } of replicas) kill();
await service.shutdown();
