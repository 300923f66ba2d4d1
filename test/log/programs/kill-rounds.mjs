// Kills and stops real processes that write and consume a log, and checks what a reader receives. Prints JSON.
//
//   kill-rounds.mjs FOLDER WRITER CONSUMER ROUNDS SEED
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { lastValueFrom, toArray } from 'rxjs';
import { feedLog, verifyLog } from '../../../src/log/index.ts';
import { seededRandom } from '../../../src/testing/sources.ts';

const [folder, writerProgram, consumerProgram, rounds, seed] = process.argv.slice(2);
const next = seededRandom(Number(seed));
const random = () => next() / 2 ** 32;
const log = feedLog(join(folder, 'log'));
const applied = join(folder, 'applied.txt');
const options = JSON.stringify({ segmentBytes: 60_000, compress: true, syncMs: 20 });
const violations = [];
const sums = { kills: 0, stops: 0, consumerKills: 0, frames: 0, gaps: 0 };

const children = new Set();
const start = (program, ...args) => {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  return child.once('exit', () => children.delete(child));
};
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));
process.on('SIGTERM', () => process.exit(1));

const ended = async (child, signal) => {
  if (!children.has(child)) return;
  const exit = once(child, 'exit');
  if (signal) child.kill(signal);
  await exit;
};
const limitMs = 60_000;
const until = async (isTrue) => {
  for (const startedAt = performance.now(); !isTrue(); await setTimeout(2))
    if (performance.now() - startedAt > limitMs) throw new Error(`Waited ${limitMs} ms in vain for: ${isTrue}`);
};

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
    contents.set(last, record.type === 'frame' ? record.text() : JSON.stringify(record));
    if (record.type !== 'frame') return;
    const [run, n] = record.json().id.split(':').map(Number);
    const isNext = id?.run === run ? n === id.n + 1 : n === 0 && (id === undefined || hasGap);
    if (!isNext) violations.push(`frame ${run}:${n} after ${id?.run}:${id?.n}`);
    id = { run, n };
    hasGap = false;
  };
  return { contents, receive, id: () => id };
};

const follower = checker();
const following = log.read$().subscribe({ next: follower.receive, error: (error) => violations.push(String(error)) });
let consumer = start(consumerProgram, join(folder, 'log'), applied);

for (let run = 0; run < Number(rounds); run += 1) {
  const writer = start(writerProgram, join(folder, 'log'), run, 'Infinity', options);
  await until(() => follower.id()?.run === run);
  const enough = follower.contents.size + random() * 300;
  await until(() => follower.contents.size > enough);
  if (run % 3 === 1) {
    sums.stops += 1;
    writer.kill('SIGSTOP');
    const second = start(writerProgram, join(folder, 'log'), 'second', '1', options);
    const [[text]] = await Promise.all([once(second.stdout, 'data'), once(second, 'exit')]);
    if (String(text).trim() !== 'log-in-use') violations.push(`a second writer: ${text}`);
    writer.kill('SIGCONT');
    const there = follower.contents.size;
    await until(() => follower.contents.size > there + 100);
  }
  if (run % 2 === 0) {
    sums.consumerKills += 1;
    if (random() < 0.5) consumer.kill('SIGSTOP');
    await ended(consumer, 'SIGKILL');
    consumer = start(consumerProgram, join(folder, 'log'), applied);
  }
  sums.kills += 1;
  await ended(writer, 'SIGKILL');
}

const count = 200;
await ended(start(writerProgram, join(folder, 'log'), rounds, String(count), options));
await until(() => follower.id()?.run === Number(rounds) && follower.id().n === count - 1);
following.unsubscribe();
const again = checker();
for (const record of await lastValueFrom(log.read$({ follow: false }).pipe(toArray()))) again.receive(record);
for (const [offset, content] of follower.contents)
  if (again.contents.get(offset) !== content) violations.push(`offset ${offset} has changed`);
const ids = [...again.contents.values()].flatMap((text) => JSON.parse(text).id ?? []);
sums.frames = ids.length;
const unworked = () => {
  const worked = new Set(existsSync(applied) ? readFileSync(applied, 'utf8').split('\n') : []);
  return ids.filter((id) => !worked.has(id));
};
await until(() => unworked().length === 0 || consumer.exitCode !== null);
await ended(consumer, 'SIGKILL');
if (unworked().length > 0) violations.push(`the consumer has not worked on ${unworked().slice(0, 5)}`);
const { damaged } = await verifyLog(join(folder, 'log'));
violations.push(...damaged.map(({ path, line, problem }) => `${path}:${line}: ${problem}`));
console.log(JSON.stringify({ ...sums, violations: violations.slice(0, 20) }));
