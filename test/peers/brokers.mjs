// Message brokers on loopback ports, for the engines of a cluster. Each can be killed, and started again with or without its data.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectToNats } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { natsEngine } from 'rx-trade-feed/nats';
import { redisEngine } from 'rx-trade-feed/redis';
import { natsServer, redisServer } from './packages.mjs';
import { freePort, listens } from './program.mjs';

const argumentsOf = {
  nats: (port, folder) => [natsServer, ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', folder]],
  'nats-core': (port) => [natsServer, ['-a', '127.0.0.1', '-p', `${port}`]],
  redis: (port, folder) => [
    redisServer,
    ['--bind', '127.0.0.1', '--port', `${port}`, '--dir', folder, '--appendonly', 'yes', '--appendfsync', 'always'],
  ],
  sentinel: (port, folder) => {
    const file = join(folder, 'sentinel.conf');
    writeFileSync(file, `bind 127.0.0.1\nport ${port}\n`);
    return [redisServer, [file, '--sentinel']];
  },
};

/** Starts a broker that stores its data in a folder; `nats-core` has no JetStream, and `sentinel` watches nothing yet. */
export const startBroker = async (kind, folder, moreArgs = []) => {
  const data = join(folder, kind);
  const port = await freePort();
  let running;

  const start = async () => {
    mkdirSync(data, { recursive: true });
    const [command, args] = argumentsOf[kind](port, data);
    const child = spawn(command, [...args, ...moreArgs], { stdio: ['ignore', 'ignore', 'pipe'], cwd: folder });
    let stderr = '';
    child.stderr.on('data', (chunk) => (stderr += chunk));
    running = { child, ended: once(child, 'close').then(() => stderr) };
    await listens(port, running);
    // A server of NATS 2.9 seldom panics after a start (exit code 2). As where it runs for real, it's started again.
    child.once('exit', (code) => code !== null && code !== 0 && void startAgain(code));
  };

  const startAgain = async (code) => {
    console.error(
      `The ${kind} server ended with the code ${code}, and starts again:\n${(await running.ended).slice(-4_000)}`,
    );
    await start();
  };

  const kill = async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  };

  await start();
  return {
    ...{ kind, port, start, kill },
    get pid() {
      return running.child.pid;
    },
    /** How it ended; `undefined` while it runs. */
    get ended() {
      return running.child.exitCode ?? running.child.signalCode ?? undefined;
    },
    wipe: () => rmSync(data, { recursive: true, force: true }),
  };
};

/** Starts three servers of NATS that store each stream three times. `kill` ends the one that leads `stream`, once the others have all of it. */
export const startNatsCluster = async (folder, stream) => {
  const names = ['one', 'two', 'three'];
  const routes = await Promise.all(names.map(freePort));
  const addresses = routes.map((port) => `nats://127.0.0.1:${port}`);
  const argsOf = (name, n) =>
    `--name ${name} --cluster_name test --cluster ${addresses[n]} --routes ${addresses.join()}`.split(' ');
  const servers = await Promise.all(names.map((name, n) => startBroker('nats', join(folder, name), argsOf(name, n))));
  const ports = servers.map(({ port }) => port);
  const addressesOf = ports.map((port) => `127.0.0.1:${port}`);
  const connection = await connectToNats({ servers: addressesOf, maxReconnectAttempts: -1 });
  /** Asks until there is an answer: while the servers elect a leader, requests fail. Throws what failed last if that takes a minute. */
  const ask = async (question) => {
    let failure = new Error(`The stream ${stream} has no leader, or a server that lags.`);
    for (const startedAt = performance.now(); performance.now() - startedAt < 60_000; await setTimeout(100)) {
      const answer = await jetstreamManager(connection)
        .then(question)
        .catch((error) => void (failure = error));
      if (answer) return answer;
    }
    throw failure;
  };
  await ask((manager) => manager.getAccountInfo());
  const leaderOf = async (manager) => {
    const { leader, replicas = [] } = (await manager.streams.info(stream)).cluster ?? {};
    return replicas.length === 2 && replicas.every(({ current }) => current) ? leader : undefined;
  };
  let killed;
  return {
    ports,
    pids: () => servers.map(({ pid }) => pid),
    kill: async () => {
      killed = servers[names.indexOf(await ask(leaderOf))];
      await killed.kill();
    },
    start: () => killed.start(),
    stop: async () => {
      await connection.close();
      await Promise.all(servers.map((server) => server.kill()));
    },
  };
};

/** Connects an engine to a broker, or to a proxy in front of it. Returns the engine, and a function that closes its connections. */
export const connectEngine = async (kind, port) => {
  if (kind === 'nats') {
    const reconnects = { maxReconnectAttempts: -1, reconnectTimeWait: 100, reconnectJitter: 50 };
    const patience = { ignoreAuthErrorAbort: true, pingInterval: 2_000, timeout: 2_000, waitOnFirstConnect: true };
    const connection = await connectToNats({ servers: `127.0.0.1:${port}`, ...reconnects, ...patience });
    return { engine: natsEngine(connection), close: () => connection.close() };
  }
  const connections = [0, 1].map(() => {
    const connection = new Redis(port, '127.0.0.1', { retryStrategy: () => 100 });
    // The engine reports lost connections itself. ioredis also prints errors that nothing listens to.
    connection.on('error', () => undefined);
    return connection;
  });
  const [commands, subscriber] = connections;
  return { engine: redisEngine(commands, subscriber), close: () => connections.forEach((each) => each.disconnect()) };
};
