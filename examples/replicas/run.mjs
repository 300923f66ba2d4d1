// Three NestJS replicas behind nginx, three open pages, and a rolling deploy: no page stops, and no frame comes twice.
//
//   apt-get install nginx nats-server
//   node examples/replicas/run.mjs
import { fork, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { interval, map } from 'rxjs';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { nginxConfiguration } from './nginx.mjs';

const folder = mkdtempSync(join(tmpdir(), 'replicas-'));
/** @type {(() => unknown)[]} */
const closing = [() => rmSync(folder, { recursive: true, force: true })];

/**
 * Returns ports that no program uses, below those that the system assigns: no other program receives them meanwhile.
 *
 * @param {number} count
 * @returns {Promise<number[]>}
 */
const freePorts = async (count) => {
  const ports = new Set();
  while (ports.size < count) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) ports.add(port);
  }
  return [...ports];
};

/** Starts a program, and waits until its port accepts connections. @param {string} command @param {string[]} args @param {number} port */
const startProgram = async (command, args, port) => {
  const program = spawn(command, args, { stdio: 'ignore' });
  program.on('error', () => {
    console.error(`${command} is not installed: apt-get install nginx nats-server`);
    process.exit(1);
  });
  closing.push(() => program.kill('SIGKILL'));
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(50);
  }
};

const [natsPort = 0, nginxPort = 0, ...replicaPorts] = await freePorts(5);

// A frame every 5 ms, each with its number.
const service = await startTradeFeedService({ sources: { market: interval(5).pipe(map((number) => `${number}`)) } });
closing.push(() => service.shutdown());
const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
await startProgram(
  'nats-server',
  ['-a', '127.0.0.1', '-p', `${natsPort}`, '-js', '-sd', join(folder, 'nats')],
  natsPort,
);

/** Starts a replica, and waits until it listens. @param {number} index */
const startReplica = async (index) => {
  const port = replicaPorts[index];
  const replica = fork(new URL('app.mjs', import.meta.url), {
    env: {
      ...process.env,
      ...{ PORT: `${port}`, REPLICA: `replica-${index + 1}`, NATS_URL: `127.0.0.1:${natsPort}` },
      ...{ TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: apiKey },
    },
  });
  closing.push(() => replica.kill('SIGKILL'));
  const exited = once(replica, 'exit').then(([code]) => {
    throw new Error(`replica-${index + 1} has exited with ${code}`);
  });
  await Promise.race([once(replica, 'message'), exited]);
  // Ready: it receives the frames of the owner.
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/health`);
    const health = /** @type {{ 'trade-feed': { state: string } }} */ (await response.json());
    if (health['trade-feed'].state === 'live') return replica;
    await delay(50);
  }
};
const replicas = [];
for (const index of [0, 1, 2]) replicas.push(await startReplica(index));

const configuration = join(folder, 'nginx.conf');
writeFileSync(configuration, nginxConfiguration(folder, nginxPort, replicaPorts));
await startProgram('nginx', ['-c', configuration, '-e', join(folder, 'error.log')], nginxPort);

const pages = [1, 2, 3].map((name) => {
  const page = { name, numbers: /** @type {number[]} */ ([]), gaps: /** @type {string[]} */ ([]), hasStopped: false };
  const subscription = relayFeed$(`http://127.0.0.1:${nginxPort}/feed`, { backoff: { initialDelayMs: 20 } }).subscribe({
    next: (event) => {
      if (event.type === 'frame') page.numbers.push(Number(event.text()));
      if (event.type === 'gap') page.gaps.push(event.failure.code);
    },
    error: () => (page.hasStopped = true),
  });
  closing.push(() => subscription.unsubscribe());
  return page;
});

/** Waits until each page has received more frames. @param {number} count */
const receive = async (count) => {
  const goals = pages.map(({ numbers }) => numbers.length + count);
  while (!pages.every(({ numbers, hasStopped }, index) => hasStopped || numbers.length >= (goals[index] ?? 0)))
    await delay(20);
};
await receive(200);

for (const index of [0, 1, 2]) {
  const old = replicas[index];
  console.log(`replica-${index + 1} is replaced`);
  const ended = once(/** @type {import('node:child_process').ChildProcess} */ (old), 'exit');
  old?.kill('SIGTERM');
  await ended;
  replicas[index] = await startReplica(index);
  await receive(200);
}

let isGood = true;
for (const { name, numbers, gaps, hasStopped } of pages) {
  const twice = numbers.length - new Set(numbers).size;
  const missing = numbers.reduce(
    (sum, number, index) => sum + (index === 0 ? 0 : number - (numbers[index - 1] ?? 0) - 1),
    0,
  );
  const inOrder = numbers.every((number, index) => index === 0 || number > (numbers[index - 1] ?? 0));
  console.log(
    `page ${name}: ${hasStopped ? 'stopped' : 'open'}, ${numbers.length} frames, ${twice} twice, ${missing} missing, gaps: ${gaps.join(', ') || 'none'}`,
  );
  isGood &&= !hasStopped && twice === 0 && inOrder && (missing === 0 || gaps.length > 0);
}
console.log(isGood ? 'no page has stopped, and no frame came twice' : 'failed');
for (const close of closing.reverse()) await close();
process.exit(isGood ? 0 : 1);
