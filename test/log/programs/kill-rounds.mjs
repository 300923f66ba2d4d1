// Kills and stops real processes that write and consume a log, and the servers that have it. Checks what a reader receives. Prints JSON.
//
//   kill-rounds.mjs folder|nats|nats-cluster|redis FOLDER WRITER CONSUMER ROUNDS SEED
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { lastValueFrom, toArray } from 'rxjs';
import { verifyLog } from '../../../src/log/index.ts';
import { seededRandom } from '../../../src/testing/sources.ts';
import { startBroker, startNatsCluster } from '../../peers/brokers.mjs';
import { logAt } from './log-at.mjs';

const [engine, folder, writerProgram, consumerProgram, rounds, seed] = process.argv.slice(2);
const isFolder = engine === 'folder';
const next = seededRandom(Number(seed));
const random = () => next() / 2 ** 32;
const applied = join(folder, 'applied.txt');
// Three servers elect a leader for seconds.
const options = JSON.stringify(
  isFolder ? { segmentBytes: 60_000, compress: true, syncMs: 20 } : { maxWaitingBytes: 500_000_000 },
);
const violations = [];
const sums = { writerKills: 0, serverKills: 0, stops: 0, consumerKills: 0, frames: 0, gaps: 0 };

const children = new Set();
const run = (...args) => {
  const child = spawn(process.execPath, args.map(String), {
    stdio: ['ignore', 'pipe', isFolder ? 'inherit' : 'ignore'],
  });
  children.add(child);
  return child.once('exit', () => children.delete(child));
};
const startOne = async () => {
  const broker = await startBroker(engine, folder);
  return { ports: [broker.port], kill: broker.kill, start: broker.start, pids: () => [broker.pid] };
};
const startServer = {
  folder: () => undefined,
  nats: startOne,
  redis: startOne,
  'nats-cluster': () => startNatsCluster(folder, 'RTF_LOG_market'),
}[engine];
const server = await startServer();
process.on('exit', () => {
  children.forEach((child) => child.kill('SIGKILL'));
  server?.pids().forEach((pid) => process.kill(pid, 'SIGKILL'));
});
process.on('SIGTERM', () => process.exit(1));

const ended = async (child, signal) => {
  if (!children.has(child)) return;
  const exit = once(child, 'exit');
  if (signal) child.kill(signal);
  await exit;
};
const limitMs = 60_000;
const until = async (isTrue) => {
  for (const startedAt = performance.now(); !(await isTrue()); await setTimeout(2))
    if (performance.now() - startedAt > limitMs) throw new Error(`Waited ${limitMs} ms in vain for: ${isTrue}`);
};

const place = isFolder ? join(folder, 'log') : `${engine.split('-')[0]}:${server.ports.join()}`;
const log = await logAt(place);

/** Checks that a reader receives records in order. */
const checker = () => {
  const contents = new Map();
  let [last, id, hasGap] = [-1, undefined, false];
  const receive = (record) => {
    if (record.type === 'gap') {
      hasGap = true;
      sums.gaps += 1;
    }
    if (record.offset === undefined) return;
    if (record.offset !== last + 1) violations.push(`${record.offset} after ${last}`);
    last = record.offset;
    contents.set(last, record.type === 'frame' ? record.text() : JSON.stringify({ ...record, position: undefined }));
    if (record.type !== 'frame') return;
    const [writer, n] = record.json().id.split(':').map(Number);
    const isNext = id?.writer === writer ? n === id.n + 1 : n === 0 && (id === undefined || hasGap);
    if (!isNext) violations.push(`frame ${writer}:${n} after ${id?.writer}:${id?.n}`);
    id = { writer, n };
    hasGap = false;
  };
  return { contents, receive, id: () => id };
};

const follower = checker();
const following = log.read$().subscribe({ next: follower.receive, error: (error) => violations.push(String(error)) });
const grows = async (by) => {
  const enough = follower.contents.size + by;
  await until(() => follower.contents.size >= enough);
};
let consumer = run(consumerProgram, place, applied);
// On a server, a consumer that stood still may have been taken over.
const keepConsuming = () => {
  if (!children.has(consumer)) consumer = run(consumerProgram, place, applied);
};
let writers = 0;
const startWriter = async (count = Infinity) => {
  const writer = run(writerProgram, place, writers++, count, options);
  await until(() => follower.id()?.writer === writers - 1);
  return writer;
};
const endsWith = async (expected, child) => {
  const [[text]] = await Promise.all([once(child.stdout, 'data'), once(child, 'exit')]);
  if (String(text).trim() !== expected) violations.push(`a writer has not ended with ${expected}: ${text}`);
};

/** A writer that stands still keeps the lock of a folder. On a server, another one takes over, and the first one is fenced. */
const stop = async (writer) => {
  sums.stops += 1;
  writer.kill('SIGSTOP');
  if (isFolder) {
    await endsWith('log-in-use', run(writerProgram, place, 'second', 1, options));
    writer.kill('SIGCONT');
    await grows(100);
  } else {
    const second = await startWriter();
    await grows(100);
    const fenced = endsWith('log-fenced', writer);
    writer.kill('SIGCONT');
    await fenced;
    await grows(100);
    await ended(second, 'SIGKILL');
  }
};

for (let round = 0; round < Number(rounds); round += 1) {
  const writer = await startWriter();
  await grows(random() * 400);
  for (let n = 0; !isFolder && n < round % 3; n += 1) {
    sums.serverKills += 1;
    await server.kill();
    await setTimeout(random() * 100);
    await server.start();
    await grows(200);
  }
  if (round % 2 === 0) {
    sums.consumerKills += 1;
    if (random() < 0.5) consumer.kill('SIGSTOP');
    await ended(consumer, 'SIGKILL');
  }
  keepConsuming();
  if (round % 3 === 1) await stop(writer);
  sums.writerKills += 1;
  await ended(writer, 'SIGKILL');
}

const count = 200;
await startWriter(count);
await until(() => follower.id().n === count - 1);
following.unsubscribe();
const again = checker();
for (const record of await lastValueFrom(log.read$({ follow: false }).pipe(toArray()))) again.receive(record);
for (const [offset, content] of follower.contents)
  if (again.contents.get(offset) !== content) violations.push(`offset ${offset} has changed`);
const ids = [...again.contents.values()].flatMap((text) => JSON.parse(text).id ?? []);
sums.frames = ids.length;
const unworked = () => {
  if (!isFolder) keepConsuming();
  const worked = new Set(existsSync(applied) ? readFileSync(applied, 'utf8').split('\n') : []);
  return ids.filter((id) => !worked.has(id));
};
await until(() => unworked().length === 0 || !children.has(consumer));
if (unworked().length > 0) violations.push(`the consumer has not worked on ${unworked().slice(0, 5)}`);
for (const child of [...children]) await ended(child, 'SIGKILL');
if (isFolder)
  for (const { path, line, problem } of (await verifyLog(place)).damaged)
    violations.push(`${path}:${line}: ${problem}`);
console.log(JSON.stringify({ ...sums, violations: violations.slice(0, 20) }));
process.exit();
