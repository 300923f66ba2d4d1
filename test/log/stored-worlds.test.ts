/** @lane clock */
import { expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { Subject } from 'rxjs';
import { memoryEngine } from '../../src/cluster/index.js';
import { engineLog } from '../../src/log/engine-log.js';
import type { FeedLog, From, LogError, LogRecord } from '../../src/log/index.js';
import { liveSubject, retention } from '../../src/log/line-store.js';
import { memoryLine } from '../../src/log/memory-line.js';
import { Frame } from '../../src/protocol/frame.js';
import { cutEngine } from '../cluster/support/cut-engine.js';
import { cases } from '../support/cases.js';
import { createChance, type Chance } from '../simulation/chance.js';
import { waitFor } from '../support/wait-for.js';
import { all, follow, startWriter } from './support.js';

/** A server in memory that can lose its newest messages, and the connections of processes to it, which can be cut. */
const startServer = () => {
  const base = memoryEngine();
  const memory = {
    messages: [],
    bytes: 0,
    limits: { kind: 'log' },
    oldestKept: retention({ kind: 'log' }),
  } as Parameters<typeof memoryLine>[0];
  const engine = {
    ...base,
    line: (spec: Parameters<typeof liveSubject>[0]) =>
      memoryLine(memory, (bytes) => base.publish(liveSubject(spec), bytes)),
  };
  const connect = () => {
    const client = cutEngine(engine, true);
    const parts = { path: `log ${Math.random()}`, isAway: () => true, cursorKey: (name: string) => name };
    const broker = { engine: client, connection: client, isClosed: () => false };
    return { client, log: engineLog({ ...parts, ...broker }, { name: 'market' }) };
  };
  return {
    connect,
    size: () => memory.messages.length,
    lose: (count: number) => memory.messages.splice(memory.messages.length - count, count),
  };
};

type Server = ReturnType<typeof startServer>;

const frame = (n: number): Frame => new Frame('market', Buffer.from(JSON.stringify({ n })), false, 1_000 + n, 1);
const numberOf = (record: LogRecord): number => (record.type === 'frame' ? (record.json() as { n: number }).n : NaN);

/** What a reader has received over several subscriptions, each of which begins where the one before has ended. */
const readOn = (log: FeedLog, chance: Chance) => {
  const records: LogRecord[] = [];
  let from: From = 'earliest';
  const state = { isOver: false };
  let reading: AsyncIterator<readonly LogRecord[]> | undefined;
  const reads = (async () => {
    while (!state.isOver) {
      const most = chance.whole(1, 200);
      let count = 0;
      const batches = (reading = log.read({ from })[Symbol.asyncIterator]());
      for await (const batch of { [Symbol.asyncIterator]: () => batches }) {
        for (const record of batch) {
          // A status that the reader adds again isn't new.
          if (record.type !== 'watermark') records.push(record);
          if (record.type !== 'watermark' && record.position)
            from = JSON.parse(JSON.stringify(record.position)) as From;
        }
        if ((count += batch.length) > most) break;
      }
    }
  })();
  const end = async () => {
    state.isOver = true;
    await reading?.return?.();
    await reads;
  };
  return { records, end };
};

/** What is wrong with what a reader has received. Frames have increasing numbers, over all writers. */
const problemsOf = (records: readonly LogRecord[]): readonly string[] => {
  const problems: string[] = [];
  let last: number | undefined;
  let gaps: (number | undefined)[] = [];
  for (const record of records) {
    if (record.type === 'gap') gaps.push(record.missed);
    if (record.type !== 'frame') continue;
    const n = numberOf(record);
    // A log that has lost everything begins anew, and so does a reader that had nothing before.
    const missing = n - (last ?? n - 1) - 1;
    if (missing < 0) problems.push(`${n} after ${last}`);
    if (missing > 0 && gaps.length === 0) problems.push(`${missing} are missing before ${n} without a gap`);
    const isExact = last !== undefined && gaps.length > 0 && gaps.every((gap) => gap !== undefined);
    const counted = gaps.reduce<number>((sum, gap) => sum + (gap ?? 0), 0);
    if (isExact && counted !== missing) problems.push(`gaps count ${counted} of ${missing} before ${n}`);
    [last, gaps] = [n, []];
  }
  return problems;
};

/** One writer after another appends; connections are cut, the server loses messages, writers crash. */
const runWorld = async (seed: number) => {
  const chance = createChance(seed);
  const server: Server = startServer();
  const readers = [1, 2].map(() => {
    const { client, log } = server.connect();
    return { client, ...readOn(log, chance) };
  });
  let sent = 0;
  const errors: string[] = [];
  const crashed: ReturnType<Server['connect']>[] = [];
  for (let round = 0; round < 4; round += 1) {
    const { client, log } = server.connect();
    const source = new Subject<unknown>();
    let isOver = false;
    source
      .pipe(log.append({ onError: () => undefined }))
      .subscribe({ complete: () => (isOver = true), error: (error: LogError) => errors.push(error.code) });
    await waitFor(() => source.observed, { what: () => `seed ${seed}: round ${round} begins` });
    source.next({ type: 'opened', at: 1_000 + sent, feed: 'market', connection: 1 });
    for (let chunk = 0; chunk < 8; chunk += 1) {
      for (let n = chance.whole(1, 40); n > 0; n -= 1) source.next(frame((sent += 1)));
      if (chance.isTrue(0.2)) client.cut();
      if (chance.isTrue(0.1)) server.lose(chance.whole(1, 4));
      if (chance.isTrue(0.2)) chance.oneOf(readers).client.cut();
      await delay(chance.between(0, 30));
      client.restore();
      for (const reader of readers) reader.client.restore();
    }
    if (chance.isTrue(0.5)) {
      source.complete();
      await waitFor(() => isOver, { what: () => `seed ${seed}: round ${round} ends` });
    } else {
      client.cut();
      crashed.push({ client, log });
      if (chance.isTrue(0.5)) server.lose(chance.whole(1, 4));
    }
  }
  const { log } = server.connect();
  const source = new Subject<unknown>();
  let isOver = false;
  source
    .pipe(log.append())
    .subscribe({ complete: () => (isOver = true), error: (error: LogError) => errors.push(error.code) });
  await waitFor(() => source.observed, { what: () => `seed ${seed}: the last writer begins` });
  source.next({ type: 'opened', at: 1_000 + sent, feed: 'market', connection: 1 });
  source.next(frame((sent += 1)));
  source.complete();
  await waitFor(() => isOver, { what: () => `seed ${seed}: the last writer ends` });
  const stored = await all(log);
  for (const reader of readers)
    await waitFor(() => reader.records.some((record) => numberOf(record) === sent), {
      limitMs: 8_000,
      what: () => `seed ${seed}: a reader has ${sent}: ${reader.records.map(numberOf).slice(-5).join()}`,
    });
  await Promise.all(readers.map(({ end }) => end()));
  // A writer that goes on after it was replaced stores nothing.
  for (const { client } of crashed) client.restore();
  await Promise.all(crashed.map((each) => each.log.close()));
  if ((await all(log)).length !== stored.length) return ['a replaced writer has stored something'];
  return [
    ...errors.filter((code) => code !== 'log-fenced'),
    ...problemsOf(stored).map((problem) => `log: ${problem}`),
    ...readers.flatMap(({ records }, n) => problemsOf(records).map((problem) => `reader ${n}: ${problem}`)),
  ];
};

it('loses nothing that was confirmed, repeats nothing, and counts the rest, whatever happens to its server and its writers', async () => {
  const seeds = Array.from({ length: cases(40) }, (_, n) => n + 1);
  const results = await Promise.all(seeds.map(async (seed) => ({ seed, problems: await runWorld(seed) })));
  expect(results.filter(({ problems }) => problems.length > 0)).toEqual([]);
});

it('never takes a generation again that the server has lost: a reader of it gets a gap, and what follows', async () => {
  const server = startServer();
  const following = follow(server.connect().log);
  const begin = async (...numbers: readonly number[]) => {
    const { client, log } = server.connect();
    const writer = startWriter(log);
    writer.send({ type: 'opened', at: 1_000 + numbers[0]!, feed: 'market', connection: 1 }, ...numbers.map(frame));
    await waitFor(() => following.records.some((record) => numberOf(record) === numbers.at(-1)));
    return { client, log, end: writer.end };
  };
  const first = await begin(1, 2, 3);
  await first.end();
  const stored = server.size();
  const lost = await begin(4, 5, 6, 7, 8);
  lost.client.cut();
  server.lose(server.size() - stored);
  const next = await begin(9, 10);
  await next.end();
  const seen = following.records.slice(following.records.findIndex((record) => numberOf(record) === 8) + 1);
  expect(seen.findIndex(({ type }) => type === 'gap')).toBeLessThan(seen.findIndex(({ type }) => type === 'frame'));
  expect(seen.filter(({ type }) => type === 'frame').map(numberOf)).toEqual([9, 10]);
  expect((await all(next.log)).filter(({ type }) => type === 'frame').map(numberOf)).toEqual([1, 2, 3, 9, 10]);
  following.stop();
  lost.client.restore();
  await lost.log.close();
});
