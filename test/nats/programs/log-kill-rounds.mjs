// Kills a NATS server, and kills and stops processes that write and consume a log on it. Checks what a reader receives. Prints JSON.
//
//   log-kill-rounds.mjs FOLDER WRITER CONSUMER ROUNDS SEED
import { connect } from '@nats-io/transport-node';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { lastValueFrom, toArray } from 'rxjs';
import { jetStreamLog } from '../../../src/nats/index.ts';
import { seededRandom } from '../../../src/testing/sources.ts';
import { natsServer } from '../../peers/packages.mjs';
import { listens } from '../../peers/program.mjs';
import { freePort } from '../../support/free-port.mjs';

const [folder, writerProgram, consumerProgram, rounds, seed] = process.argv.slice(2);
const next = seededRandom(Number(seed));
const random = () => next() / 2 ** 32;
const applied = join(folder, 'applied.txt');
const violations = [];
const sums = { writerKills: 0, serverKills: 0, takeovers: 0, consumerKills: 0, frames: 0, gaps: 0 };

const children = new Set();
const run = (command, ...args) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  children.add(child);
  child.on('exit', () => children.delete(child));
  return child;
};
const start = (program, ...args) => run(process.execPath, program, ...args.map(String));
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
process.on('SIGTERM', () => process.exit(1));
const killed = async (child) => {
  if (!children.has(child)) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
};
const limitMs = 60_000;
const until = async (isTrue) => {
  for (const startedAt = performance.now(); !(await isTrue()); await setTimeout(2))
    if (performance.now() - startedAt > limitMs) throw new Error(`Waited ${limitMs} ms in vain for: ${isTrue}`);
};

const port = await freePort();
const startServer = async () => {
  const child = run(natsServer, '-a', '127.0.0.1', '-p', port, '-js', '-sd', join(folder, 'nats'));
  await listens(port, { child, ended: once(child, 'exit') });
  return child;
};
let server = await startServer();
const connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
const log = jetStreamLog(connection, { name: 'market' });

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
    // A new writer can't know whether a server that was killed has lost something.
    const isNext = record.offset === last + 1 || (record.offset % 1e9 === 0 && record.offset > last);
    if (!isNext) violations.push(`${record.offset} after ${last}`);
    last = record.offset;
    contents.set(last, record.type === 'frame' ? record.text() : JSON.stringify({ ...record, position: undefined }));
    if (record.type !== 'frame') return;
    const [writer, n] = record.json().id.split(':').map(Number);
    const isInOrder = id?.writer === writer ? n === id.n + 1 : n === 0 && (id === undefined || hasGap);
    if (!isInOrder) violations.push(`frame ${writer}:${n} after ${id?.writer}:${id?.n}`);
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
let consumer = start(consumerProgram, port, applied);
// The consumer of a stopped process may be taken over: it starts again.
const keepConsuming = () => {
  if (!children.has(consumer)) consumer = start(consumerProgram, port, applied);
};

let writers = 0;
const startWriter = async (...args) => {
  const writer = start(writerProgram, port, writers++, ...args);
  await until(() => follower.id()?.writer === writers - 1);
  return writer;
};
for (let round = 0; round < Number(rounds); round += 1) {
  const writer = await startWriter();
  await grows(random() * 500);
  for (let n = 0; n < round % 3; n += 1) {
    sums.serverKills += 1;
    await killed(server);
    await setTimeout(random() * 100);
    server = await startServer();
    await grows(200);
  }
  keepConsuming();
  if (round % 2 === 0) {
    sums.consumerKills += 1;
    await killed(consumer);
    keepConsuming();
  }
  if (round % 4 === 1) {
    // Its end of the connection does not answer, so another writer takes over, and the first one is fenced.
    sums.takeovers += 1;
    writer.kill('SIGSTOP');
    const second = await startWriter();
    await grows(100);
    const [[text]] = await Promise.all([once(writer.stdout, 'data'), once(writer, 'exit'), writer.kill('SIGCONT')]);
    if (String(text).trim() !== 'log-fenced') violations.push(`a writer after a takeover: ${text}`);
    await grows(100);
    await killed(second);
  }
  sums.writerKills += 1;
  await killed(writer);
}

const count = 200;
await startWriter(count);
await until(() => follower.id()?.n === count - 1);
following.unsubscribe();
const stored = await lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
const ids = stored.flatMap((record) => (record.type === 'frame' ? [record.json().id] : []));
sums.frames = [...follower.contents.values()].filter((text) => text.startsWith('{"id"')).length;
const again = checker();
for (const record of stored) again.receive(record);
for (const [offset, content] of follower.contents)
  if (again.contents.get(offset) !== content) violations.push(`offset ${offset} has changed`);
const unworked = () => {
  keepConsuming();
  const worked = new Set(existsSync(applied) ? readFileSync(applied, 'utf8').split('\n') : []);
  return ids.filter((id) => !worked.has(id));
};
await until(() => unworked().length === 0);
for (const child of [...children]) await killed(child);
console.log(JSON.stringify({ ...sums, violations: violations.slice(0, 20) }));
process.exit();
