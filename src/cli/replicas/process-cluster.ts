import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { ReplaySubject } from 'rxjs';
import { readClusterState, requestHandOver } from '../../cluster/operate.js';
import type { Feed } from '../../index.js';
import { connectEngine } from '../cluster/engine.js';
import type { Broker } from './broker.js';
import { demoAccount, type DemoCluster, type ReplicaEvent } from './demo-replica.js';

/**
 * Creates replicas that are processes: each runs `rx-trade-feed listen --cluster`.
 *
 * @param env - the environment of these processes, with the address and the key of the service
 */
export const processCluster = async (
  feed: Feed,
  broker: Broker,
  env: Readonly<Record<string, string | undefined>>,
): Promise<DemoCluster> => {
  const { engine, close } = await connectEngine(broker.url);
  const running = new Set<() => Promise<void>>();
  return {
    description: `one process each, over ${broker.name}`,
    start: (replica) => {
      const args = ['listen', feed, '--json', '-q', '--cluster', broker.url, '--account', demoAccount];
      const child = spawn(process.execPath, [program(), ...args, '--replica', replica], {
        ...{ env, stdio: ['ignore', 'pipe', 'ignore'] },
      });
      const events = new ReplaySubject<ReplicaEvent>(1_000);
      const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
      createInterface({ input: child.stdout }).on('line', (line) => {
        for (const event of eventsIn(line)) events.next(event);
      });
      const end = async (): Promise<void> => {
        child.kill('SIGKILL');
        await closed;
      };
      running.add(end);
      void closed.then(() => {
        running.delete(end);
        events.complete();
      });
      return { events$: events, kill: () => void child.kill('SIGKILL'), stop: () => void child.kill('SIGTERM') };
    },
    state: () => readClusterState(engine, demoAccount, 0),
    handOver: () => requestHandOver(engine, demoAccount),
    close: async () => {
      await Promise.all(Array.from(running, async (end) => end()));
      await close();
      await broker.close();
    },
  };
};

// By the name of the package: the path from the built file differs from that of the source.
const program = (): string =>
  join(dirname(createRequire(import.meta.url).resolve('rx-trade-feed/package.json')), 'dist/cli/main.js');

// The last line of a killed process is incomplete.
const eventsIn = (line: string): readonly ReplicaEvent[] => {
  try {
    return [JSON.parse(line) as ReplicaEvent];
  } catch {
    return [];
  }
};
