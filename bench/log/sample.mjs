// One sample of a log: `node bench/log/sample.mjs <way> <size>` prints the CPU time in ns a frame; `delay` prints the delay in ms to another process.
import { fork } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, write } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { lastValueFrom, Subject, takeWhile } from 'rxjs';
import { Frame } from '../../dist/index.js';
import { feedLog } from '../../dist/log/index.js';
import { quantile } from '../lib/stats.mjs';
import { cpuNs } from '../support/cpu.mjs';

const [way, size = '200'] = process.argv.slice(2);
const COUNT = 300_000;
/** The frames of one turn of the event loop. */
const TURN = 64;

const folder = mkdtempSync(join(tmpdir(), 'bench-log-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, 'market');
const filler = 'x'.repeat(Number(size) - 20);
const frame = (n) => new Frame('market', Buffer.from(`{"n":${n},"x":"${filler}"}`), false, 1_767_225_600_000 + n, 1);

const inTurns = async (next) => {
  for (let n = 0; n < COUNT; n += 1) {
    next(frame(n));
    if (n % TURN === TURN - 1) await turn();
  }
};
const append = async () => {
  const source = new Subject();
  source.pipe(feedLog(path).append()).subscribe();
  await inTurns((each) => source.next(each));
  source.complete();
};

/** What the same bytes cost without a log: the encoding of each line, and one write a turn. */
const byHand = async () => {
  const fd = openSync(path, 'w');
  let waiting = '';
  let writing = Promise.resolve();
  const flush = () => {
    const bytes = Buffer.from(waiting);
    waiting = '';
    writing = writing.then(() => new Promise((done) => write(fd, bytes, 0, bytes.length, null, done)));
  };
  let count = 0;
  await inTurns(({ feed, connection, receivedAt, isBinary, data }) => {
    const head = `{"offset":${count},"type":"frame","feed":"${feed}","connection":${connection},"receivedAt":${receivedAt},"isBinary":${isBinary},`;
    waiting += `${head}"encoding":"utf8","data":${JSON.stringify(data.toString())}}\n`;
    if ((count += 1) % TURN === 0) flush();
  });
  flush();
  await writing;
  closeSync(fd);
};

const read = async () => {
  let frames = 0;
  for await (const records of feedLog(path).read({ follow: false }))
    // A payload that nobody looks at might cost nothing.
    for (const record of records) frames += Number(record.type === 'frame' && record.data.length > 0);
  if (frames !== COUNT) throw new Error(`${frames} of ${COUNT} frames were read`);
};

/** What the same lines cost without a log: `JSON.parse` and a frame. */
const readByHand = () => {
  let frames = 0;
  for (const name of readdirSync(path).filter((each) => each.endsWith('.ndjson')))
    for (const line of readFileSync(join(path, name), 'utf8').trimEnd().split('\n')) {
      const { type, feed, data, isBinary, receivedAt, connection } = JSON.parse(line);
      if (type !== 'frame') continue;
      frames += new Frame(feed, Buffer.from(data), isBinary, receivedAt, connection).connection;
    }
  if (frames !== COUNT) throw new Error(`${frames} of ${COUNT} frames were read`);
};

const consume = async (maxBatch) => {
  const work = () => Promise.resolve();
  const commits$ = feedLog(path).consume$('bench', work, { maxBatch });
  await lastValueFrom(commits$.pipe(takeWhile(({ committed }) => committed < COUNT)));
};

const cpuOf = async (work) => {
  const before = cpuNs();
  await work();
  return { way, ns: cpuNs(before) / COUNT };
};
/** Another process reads, and reports how long after its `append` each frame arrived. */
const delay = async () => {
  const source = new Subject();
  source.pipe(feedLog(path).append()).subscribe();
  const reader = fork(new URL('reader.mjs', import.meta.url), [path]);
  await new Promise((ready) => reader.once('message', ready));
  const told = new Promise((done) => reader.once('message', done));
  const timer = setInterval(() => {
    source.next(new Frame('market', Buffer.from(String(process.hrtime.bigint())), false, Date.now(), 1));
  }, 5);
  const delays = await told;
  clearInterval(timer);
  source.complete();
  return { way, p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) };
};

const ways = {
  append: () => cpuOf(append),
  'fs.write': () => cpuOf(byHand),
  read: async () => {
    await append();
    return cpuOf(read);
  },
  'JSON.parse': async () => {
    await append();
    return cpuOf(readByHand);
  },
  'consume, batches of 1': async () => {
    await append();
    return cpuOf(() => consume(1));
  },
  delay,
};
console.log(JSON.stringify(await ways[way]()));
process.exit();
