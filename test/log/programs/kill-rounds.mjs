// Kills processes that write and consume a log, and the servers that have it: one of each in a round. Checks what
// readers receive, and what consumers have worked on. Prints JSON.
//
//   kill-rounds.mjs folder|nats|nats-cluster|redis FOLDER WRITER CONSUMER ROUNDS SEED
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { verifyLog } from '../../../src/log/index.ts';
import { seededRandom } from '../../../src/testing/sources.ts';
import { startBroker, startNatsCluster } from '../../peers/brokers.mjs';
import { checkConsumer, checkReader } from './kill-checks.mjs';
import { logAt } from './log-at.mjs';

const [engine, folder, writerProgram, consumerProgram, rounds, seed] = process.argv.slice(2);
const isFolder = engine === 'folder';
const next = seededRandom(Number(seed));
const random = () => next() / 2 ** 32;
const notes = join(folder, 'notes.txt');
// Three servers elect a leader for seconds.
const options = JSON.stringify(
  isFolder ? { segmentBytes: 60_000, compress: true, syncMs: 20 } : { maxWaitingBytes: 500_000_000 },
);
const violations = [];
const report = (violation) => violations.push(violation);
const sums = { writerKills: 0, serverKills: 0, consumerKills: 0, stops: 0, confirmed: 0 };

const limitMs = 120_000;
const until = async (isTrue) => {
  for (const startedAt = performance.now(); !(await isTrue()); await setTimeout(2))
    if (performance.now() - startedAt > limitMs) throw new Error(`Waited ${limitMs} ms in vain for: ${isTrue}`);
};

const children = new Set();
/** Starts a program. Any end of it that isn't expected is a violation. */
const run = (...args) => {
  const child = {
    process: spawn(process.execPath, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'] }),
    ...{ said: '', errors: '', isExpected: false, hasEnded: false },
  };
  children.add(child);
  child.process.stdout.on('data', (text) => (child.said += text));
  child.process.stderr.on('data', (text) => (child.errors = `${child.errors}${text}`.slice(-2_000)));
  child.process.once('close', (code) => {
    children.delete(child);
    child.hasEnded = true;
    if (!child.isExpected) report(`${args.join(' ')} has ended with ${code}: ${child.said}${child.errors}`);
  });
  return child;
};
const ended = (child) => {
  child.isExpected = true;
  return until(() => child.hasEnded);
};
/** Runs a writer until all that it has is stored. */
const completeWriter = async (count) => {
  const writer = await startWriter(count);
  await ended(writer);
  if (writer.process.exitCode !== 0) report(`a writer has not completed: ${writer.said}${writer.errors}`);
};
const kill = async (child) => {
  child.isExpected = true;
  child.process.kill('SIGKILL');
  await ended(child);
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
  children.forEach((child) => child.process.kill('SIGKILL'));
  server?.pids().forEach((pid) => process.kill(pid, 'SIGKILL'));
});
process.on('SIGTERM', () => process.exit(1));

const place = isFolder ? join(folder, 'log') : `${engine.split('-')[0]}:${server.ports.join()}`;
const log = await logAt(place);

const follower = checkReader(report);
const following = log.read$().subscribe({ next: follower.receive, error: (error) => report(String(error)) });
const grows = async (by) => {
  const enough = follower.hashes.length + by;
  await until(() => follower.hashes.length >= enough);
};
let writers = 0;
const startWriter = async (count = Infinity) => {
  const number = writers++;
  const writer = run(writerProgram, place, number, count, options);
  writer.isExpected = count < Infinity;
  await until(() => follower.id()?.writer === number);
  return writer;
};
let consumer = run(consumerProgram, place, notes);

const killWriter = async (writer) => {
  sums.writerKills += 1;
  await kill(writer);
};
const killConsumer = async () => {
  sums.consumerKills += 1;
  if (random() < 0.5) consumer.process.kill('SIGSTOP');
  await kill(consumer);
};
const killServer = async () => {
  if (isFolder) return;
  sums.serverKills += 1;
  await server.kill();
};
const pause = () => setTimeout(random() * 100);

/** All at the same time, in any order. */
const together = async (writer) => {
  const kills = [killServer, killConsumer, () => killWriter(writer)];
  while (kills.length > 0) {
    const [each] = kills.splice(Math.floor(random() * kills.length), 1);
    await each();
    await pause();
  }
  if (!isFolder) await server.start();
  consumer = run(consumerProgram, place, notes);
};
/** One after the other. The writer and the consumer outlive the server. */
const inTurn = async (writer) => {
  await killServer();
  await pause();
  if (!isFolder) await server.start();
  await grows(200);
  await killConsumer();
  consumer = run(consumerProgram, place, notes);
  await grows(200);
  await killWriter(writer);
};
/** The server is killed as soon as it has confirmed all that a writer had. */
const confirmed = async (writer) => {
  await killWriter(writer);
  const [number, count] = [writers, 1 + Math.floor(random() * 200)];
  await completeWriter(count);
  await killServer();
  await killConsumer();
  if (!isFolder) await server.start();
  consumer = run(consumerProgram, place, notes);
  sums.confirmed += count;
  await until(() => follower.id().n === count - 1);
  if (follower.id().writer !== number) report(`${follower.id().writer} came after ${number}`);
};

const endsWith = async (child, code) => {
  await ended(child);
  if (child.said.trim() !== code) report(`a writer has not ended with ${code}: ${child.said}`);
};
/** A writer that stands still keeps the lock of a folder. On a server, another one takes over, and the first one is fenced. */
const stop = async (writer) => {
  sums.stops += 1;
  writer.process.kill('SIGSTOP');
  if (isFolder) {
    await endsWith(run(writerProgram, place, 'second', 1, options), 'log-in-use');
    writer.process.kill('SIGCONT');
    await grows(100);
    return writer;
  }
  const second = await startWriter();
  await grows(100);
  writer.isExpected = true;
  writer.process.kill('SIGCONT');
  await endsWith(writer, 'log-fenced');
  await grows(100);
  return second;
};

const killAll = async () => {
  for (let round = 0; round < Number(rounds); round += 1) {
    const writer = await startWriter();
    await grows(random() * 400);
    await [together, inTurn, confirmed][round % 3](round % 2 === 0 ? writer : await stop(writer));
  }
  const count = 200;
  await completeWriter(count);
  await until(() => follower.id().n === count - 1);
};

const checkAll = async () => {
  following.unsubscribe();
  const again = checkReader(report);
  await log.read$({ follow: false }).forEach(again.receive);
  follower.hashes.forEach((hash, offset) => {
    if (again.hashes[offset] !== hash) report(`offset ${offset} has changed`);
  });
  const consumed = (each) => checkConsumer(existsSync(notes) ? readFileSync(notes, 'utf8') : '', each);
  await until(
    async () =>
      (await setTimeout(100)) ?? (consumed(() => undefined).committed === again.names.length || consumer.hasEnded),
  );
  for (const child of [...children]) await kill(child);
  const { worked, repeated } = consumed(report);
  again.names.forEach((name, offset) => {
    if (worked[offset] !== name) report(`a consumer has worked on ${worked[offset]} in place of ${offset}=${name}`);
  });
  if (isFolder)
    for (const { path, line, problem } of (await verifyLog(place)).damaged) report(`${path}:${line}: ${problem}`);
  return { ...again.sums(), repeated };
};

let figures = {};
try {
  await killAll();
  figures = await checkAll();
} catch (error) {
  report(String(error));
}
console.log(JSON.stringify({ ...sums, ...figures, violations: violations.slice(0, 20) }));
process.exit();
