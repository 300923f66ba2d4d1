/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { type ClusterEngine, createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { encode, encodeParts, type FeedHead, headOf } from '../../src/cluster/messages.js';
import { createTradeFeedError, Frame, type LifecycleEvent } from '../../src/index.js';
import { isClusterEvent } from '../../src/protocol/event.js';
import { type Place, startOf } from '../../src/protocol/place.js';
import { waitFor } from '../support/wait-for.js';
import { startTestCluster } from './support/replicas.js';
import { linesOf, noting, read } from './support/stored.js';

const clusterOver = (engine: ClusterEngine) =>
  createFeedCluster('market', { engine, account: 'main', apiKey: 'key', baseUrl: 'http://localhost/' });

/** A line in memory, to which a test writes messages of one record each, and a cluster that has never run. */
const startLine = (begin = startOf('line')) => {
  const memory = memoryEngine();
  const reads: number[] = [];
  const engine: ClusterEngine = {
    ...memory,
    line: (spec) => {
      const line = memory.line!(spec);
      return {
        ...line,
        read: (from, ...rest) => {
          reads.push(from);
          return line.read(from, ...rest);
        },
      };
    },
  };
  const store = engine.line!({ kind: 'line', name: 'main', headOf });
  const cluster = clusterOver(engine);
  let next = begin;
  let generation = {
    gen: begin.gen + 1,
    after: begin.gen,
    began: begin.offset,
    owner: 'r1',
    settling: undefined as FeedHead['settling'],
  };
  const head = (at: number): FeedHead => {
    const complete = generation.settling === undefined ? at : next.complete;
    return { ...next, ...generation, phase: 'open', revision: 1, count: 1, at, complete };
  };
  const frame = (text: string): void => {
    const written = head(1_000 + next.offset);
    const [bytes] = encodeParts(written, new Frame('market', Buffer.from(text), false, written.at, 1), 1_000_000);
    store.append(written, bytes!);
    next = { ...written, offset: next.offset + 1, frames: next.frames + 1 };
  };
  return {
    engine,
    cluster,
    /** From where the store was read. */
    reads,
    frames: (from: number, to: number) => {
      for (let n = from; n < to; n += 1) frame(String(n));
    },
    event: (event: LifecycleEvent, phase: FeedHead['phase'], settling: FeedHead['settling']) => {
      generation = { ...generation, settling };
      const written = { ...head(1_000 + next.offset), phase };
      store.append(written, encode({ ...written, kind: 'event', event }));
      next = { ...written, offset: next.offset + 1, holes: next.holes + (event.type === 'gap' ? 1 : 0) };
    },
    /** Another owner continues the line. */
    takeOver: () => {
      const { gen } = generation;
      generation = { ...generation, gen: gen + 1, after: gen, began: next.offset, owner: `r${gen + 1}` };
    },
    get place(): Place {
      const { line, offset, frames, holes, at, complete } = next;
      return { line, gen: generation.gen, offset, frames, holes, at, complete };
    },
  };
};

const textsIn = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => {
    const { type, data, missed, failure } = JSON.parse(line) as Record<string, string> & { failure?: { code: string } };
    return type === 'frame' ? data! : [type, failure?.code, missed].filter((each) => each !== undefined).join(' ');
  });

const lost = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 1_001 });
const opened = { type: 'opened', at: 1_000, feed: 'market', connection: 1 } as const;
const gap = { type: 'gap', from: 1_001, to: 1_003, durationMs: 2, failure: lost } as const;

describe('what the store of a line has', () => {
  it('reads no more than a page may receive, and some for the status', async () => {
    const { cluster, frames, reads } = startLine();
    frames(0, 1_000);
    const { lines } = await read(cluster, { ...startOf('line'), gen: 1, offset: 10, frames: 10 }, { maxBytes: 10_000 });
    const received = textsIn(lines).filter((text) => !Number.isNaN(Number(text)));
    expect(received.at(-1)).toBe('999');
    expect(received.length).toBeLessThan(100);
    // The first message is read for the number of the gap.
    expect(reads).toEqual([9, Number(received[0]) - 64]);
  });

  it('keeps to the limit for a page that has more than the line, which a later owner continued before it', async () => {
    const { cluster, frames } = startLine({ ...startOf('line', 100), gen: 1, frames: 100 });
    frames(100, 1_000);
    const page = { ...startOf('line'), gen: 1, offset: 990, frames: 990 };
    const { lines } = await read(cluster, page, { maxBytes: 10_000 });
    const texts = textsIn(lines);
    expect(texts.length).toBeLessThan(100);
    expect(texts.at(-1)).toBe('999');
    expect(texts.filter((text) => text.startsWith('gap'))).toEqual(['gap relay-behind']);
  });

  it('is what a replica has emitted after each place, over outages and owners', async () => {
    await using test = await startTestCluster(undefined, true);
    const [first, second] = [test.start('a'), test.start('b')];
    const owner = await test.owner(first, second);
    const other = owner === first ? second : first;
    const follower = test.start('follower', { canOwn: false });
    const { events, places, stop } = noting(follower.cluster);
    await test.owner(owner, other, follower);
    const gaps = (count: number) => waitFor(() => events.filter(({ type }) => type === 'gap').length === count);
    const push = async (text: string) => {
      test.push(text);
      await waitFor(() => follower.texts().at(-1) === text, { what: () => text });
    };
    await push('1');
    test.service.dropConnections();
    await gaps(1);
    await push('2');
    await owner.cluster.handOver();
    await gaps(2);
    await push('3');
    await push('4');
    const known = places.map((place, n) => [place, linesOf(events.slice(n + 1))] as const);
    expect(known.length).toBeGreaterThan(20);
    for (const [place, expected] of known) {
      const { lines, end } = await read(follower.cluster, place!, { isNext: true });
      expect(lines).toEqual(expected);
      expect(end ?? place).toMatchObject({ offset: places.at(-1)!.offset, frames: 4, gen: 2 });
    }
    expect(events.some(isClusterEvent)).toBe(true);
    stop();
  });

  it('begins with the status of the feed, also at its end', async () => {
    const line = startLine();
    line.event(opened, 'open', 'auto');
    line.event(gap, 'open', undefined);
    line.frames(0, 3);
    const middle = { ...line.place, offset: 3, frames: 1, holes: NaN };
    expect(textsIn((await read(line.cluster, middle)).lines)).toEqual(['opened', '1', '2']);
    const { records, lines } = await read(line.cluster, line.place);
    expect(lines.map((each) => JSON.parse(each) as unknown)).toEqual([
      { ...opened, connection: 0, at: line.place.at, completeFrom: line.place.at },
    ]);
    expect(records.map(({ frames, end }) => [frames, end])).toEqual([[0, line.place]]);
    expect(await read(line.cluster, line.place, { isNext: true })).toMatchObject({ records: [] });
    line.event({ type: 'disconnected', at: 1_005, failure: lost }, 'opening', 'auto');
    const outage = line.place;
    line.event(opened, 'open', 'auto');
    const settling = line.place;
    line.event(gap, 'open', undefined);
    expect(textsIn((await read(line.cluster, outage)).lines)).toEqual([
      ...['disconnected connection-lost', 'opened', 'gap connection-lost'],
    ]);
    expect(textsIn((await read(line.cluster, settling)).lines)).toEqual([
      ...['disconnected connection-lost', 'opened', 'gap connection-lost'],
    ]);
  });

  it('has a gap in place of what exceeds the limit of a page, with its number, and then the newest records', async () => {
    const line = startLine();
    line.frames(0, 10);
    const after = { ...line.place, holes: NaN };
    line.frames(10, 1_000);
    const { lines, records } = await read(line.cluster, after, { maxBytes: 10_000, isNext: true });
    const [status, cut, ...frames] = textsIn(lines);
    expect(status).toBe('opened');
    expect(frames.length).toBeGreaterThan(20);
    expect(frames).toEqual(Array.from({ length: frames.length }, (_, n) => String(1_000 - frames.length + n)));
    expect(cut).toBe(`gap relay-behind ${990 - frames.length}`);
    expect(records.at(-1)!.end).toEqual(line.place);
  });

  it('has a gap in place of what the store has removed, with its number', async () => {
    const line = startLine();
    line.frames(0, 10);
    const after = line.place;
    line.frames(10, 100);
    const store = line.engine.line!({ kind: 'line', name: 'main', headOf });
    const reads: number[] = [];
    const forgetful = {
      ...line.engine,
      line: () => ({
        ...store,
        read: (from: number, signal: AbortSignal) => {
          reads.push(from);
          return store.read(Math.max(from, 40), signal);
        },
      }),
    };
    const cluster = clusterOver(forgetful);
    const { lines } = await read(cluster, after, { isNext: true });
    const [first, ...frames] = textsIn(lines);
    expect(first).toBe('gap cluster-behind 30');
    expect(frames).toEqual(Array.from({ length: 60 }, (_, n) => String(40 + n)));
    expect(reads).toHaveLength(1);
  });

  it('goes on with what the next owner has stored after a place that the line never reached', async () => {
    const line = startLine();
    line.frames(0, 200);
    // 150 more records of the first owner were emitted, but not stored.
    const after = { ...line.place, offset: 350, frames: 350, at: 1_350, complete: 1_350 };
    line.takeOver();
    line.event({ ...opened, at: 1_200 }, 'open', 'auto');
    line.event({ ...gap, to: 1_202 }, 'open', undefined);
    line.frames(200, 400);
    const { lines, end } = await read(line.cluster, after, { isNext: true });
    expect(textsIn(lines).slice(0, 3)).toEqual(['opened', 'gap owner-changed', '200']);
    expect(textsIn(lines).slice(2)).toEqual(Array.from({ length: 200 }, (_, n) => String(200 + n)));
    expect(end).toMatchObject({ gen: 2, offset: 402, frames: 400 });
  });

  it('comes in parts, and ends when nobody reads it any more', async () => {
    const line = startLine();
    line.frames(0, 5_000);
    const { records, lines } = await read(line.cluster, startOf('line'));
    expect(records.length).toBeGreaterThan(3);
    expect(records.reduce((sum, { frames }) => sum + frames, 0)).toBe(5_000);
    expect(textsIn(lines).slice(-1)).toEqual(['4999']);
    for (const [n, { end, frames }] of records.slice(1).entries())
      expect(end.offset - records[n]!.end.offset).toBe(frames);
    const closed = new AbortController();
    let parts = 0;
    for await (const _ of line.cluster.stored(startOf('line'), { maxBytes: 1e9, signal: closed.signal })) {
      parts += 1;
      closed.abort();
    }
    expect(parts).toBe(1);
  });

  it('has nothing for a place in another line, without a store, and of a line that has not begun', async () => {
    const line = startLine();
    expect((await read(line.cluster, startOf('line'))).records).toEqual([]);
    line.frames(0, 10);
    expect((await read(line.cluster, { ...line.place, line: 'other' })).records).toEqual([]);
    const { line: _, ...live } = line.engine;
    const liveOnly = clusterOver(live);
    expect((await read(liveOnly, line.place)).records).toEqual([]);
  });

  it('rejects if the store cannot be read', async () => {
    const line = startLine();
    const away = { ...line.engine.line!({ kind: 'line', name: 'main', headOf }), extent: () => Promise.reject(lost) };
    const engine = { ...line.engine, line: () => away };
    const cluster = clusterOver(engine);
    await expect(read(cluster, line.place)).rejects.toBe(lost);
  });
});
