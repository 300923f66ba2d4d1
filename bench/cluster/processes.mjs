// The processes of the benchmark: a NATS server, the sender, and replicas.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBroker } from '../../test/peers/brokers.mjs';

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

const startProcess = (file, args, env) => {
  const child = fork(new URL(file, import.meta.url), args, { env: { ...process.env, ...env } });
  const messages = [];
  child.on('message', (message) => messages.push(message));
  const exited = once(child, 'exit');
  const of = (type) => messages.filter((message) => message.type === type);
  return {
    of,
    send: (message) => child.send(message),
    /** Calls a function with each message of a type. */
    on: (type, listener) => void child.on('message', (message) => message.type === type && listener(message)),
    /** Waits for the message of a type after the first `count`. */
    next: async (type, count = 0) => {
      while (of(type).length <= count) {
        if (child.exitCode !== null) throw new Error(`${file} has ended with ${child.exitCode}.`);
        await Promise.race([once(child, 'message'), exited]);
      }
      return of(type)[count];
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
};

/** Starts the sender. */
export const startSender = async () => {
  const sender = startProcess('sender.mjs', [], {});
  const { baseUrl } = await sender.next('listening');
  return { ...sender, baseUrl };
};

/** Starts a replica. */
export const startReplica = (options, env) => {
  const replica = startProcess('replica.mjs', [JSON.stringify(options)], env);
  const { of, next, send } = replica;
  return {
    ...replica,
    opened: () => next('opened'),
    report: () => {
      send('report');
      return next('report', of('report').length);
    },
  };
};

/** Starts a client of NATS without a cluster. */
export const startBare = async (options) => {
  const bare = startProcess('bare.mjs', [JSON.stringify(options)], {});
  await bare.next('ready');
  return {
    ...bare,
    report: () => {
      bare.send('report');
      return bare.next('report', bare.of('report').length);
    },
  };
};
