// The processes of the benchmark: a NATS server, the sender, and replicas.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBroker } from '../../test/peers/brokers.mjs';
import { startChild } from '../support/child.mjs';

// In ns, unlike the ticks of 10 ms in `/proc/PID/stat`.
const cpuNsOf = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, each) => sum + each, 0);

/** Starts `nats-server` on a free port. */
export const startNats = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-cluster-'));
  const broker = await startBroker('nats', folder);
  return {
    port: broker.port,
    /** The CPU time of the server so far. */
    cpuNs: () => cpuNsOf(broker.pid),
    stop: async () => {
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const start = (name, options, env) =>
  startChild(new URL(`${name}.mjs`, import.meta.url), [JSON.stringify(options)], { env });

/** Starts the sender. */
export const startSender = async () => {
  const sender = start('sender');
  return { ...sender, ...(await sender.next('listening')) };
};

/** Starts a replica. */
export const startReplica = (options, env) => {
  const replica = start('replica', options, env);
  return { ...replica, opened: () => replica.next('opened') };
};

/** Starts a client of NATS without a cluster. */
export const startBare = async (options) => {
  const bare = start('bare', options);
  await bare.next('ready');
  return bare;
};
