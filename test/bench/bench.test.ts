/**
 * @lane processes
 * @ci
 */
import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import * as ws from 'ws';
import { tempFolder } from '../cli/support/temp-folder.js';

// Programs take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

/** Imports a JavaScript module of `bench/`. */
const benchModule = async (path: string): Promise<unknown> =>
  import(pathToFileURL(join(import.meta.dirname, '../../bench', path)).href);

type Sample = Readonly<Record<string, number>>;

interface Library {
  readonly median: (values: readonly number[]) => number;
  readonly pairedRatio: (over: readonly Sample[], under: readonly Sample[], key: string) => unknown;
  readonly sample: (file: string, args?: readonly string[]) => Promise<unknown>;
}

interface Guard {
  readonly atLeast: number;
}

interface Guards {
  readonly MARGIN: number;
  readonly guards: readonly [Guard];
  readonly brokenOf: (
    some: readonly Guard[],
    ratioOf: (guard: Guard) => { readonly median: number; readonly max?: number },
  ) => readonly Guard[];
}

interface Counter {
  readonly take: (length: number) => void;
  readonly result: Promise<{ readonly frames: number; readonly unitsPerFrame: number }>;
}

const bench = (await benchModule('lib/bench.mjs')) as Library;
const check = (await benchModule('check/guards.mjs')) as Guards;
const { counter } = (await benchModule('support/measure.mjs')) as {
  counter: (of: { frameBytes: number; warmUpMs: number; countedMs: number }) => Counter;
};

const ns = (...values: number[]) => values.map((value) => ({ ns: value }));

describe('the figures of benchmarks', () => {
  it('take the median of the numbers, not of their texts, and none of an empty list', () => {
    expect([bench.median([2, 10, 1]), bench.median([10, 9, 100, 1])]).toEqual([2, 9.5]);
    expect(() => bench.median([])).toThrow(RangeError);
  });

  it('are the median of the ratios of pairs, not the ratio of the medians', () => {
    // The machine was three times slower in the second round, for both.
    expect(bench.pairedRatio(ns(20, 60, 22), ns(10, 30, 10), 'ns')).toEqual({ median: 2, min: 2, max: 2.2, rounds: 3 });
  });

  it('fail if samples cannot be paired or lack a value', () => {
    expect(() => bench.pairedRatio(ns(1, 2), ns(1), 'ns')).toThrow('2 and 1 samples');
    expect(() => bench.pairedRatio(ns(1), ns(0), 'ns')).toThrow('Round 1');
    expect(() => bench.pairedRatio(ns(1), ns(1), 'cpu')).toThrow('no ratio of cpu');
  });

  it('count the frames after the warm-up only', async () => {
    // With this size the clock is read every 16 frames.
    const { take, result } = counter({ frameBytes: 2 ** 20, warmUpMs: 0, countedMs: 0 });
    for (let n = 0; n < 16; n += 1) take(1);
    for (let n = 0; n < 16; n += 1) take(5);
    for (let n = 0; n < 16; n += 1) take(9);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: 5 });
  });
});

describe('the check of the benchmarks', () => {
  const [guard] = check.guards;
  const broken = (median: number, max?: number) =>
    check.brokenOf([guard], () => ({ median, max: max ?? median })).length;

  it('passes a ratio down to the goal minus the margin, and fails below', () => {
    const least = guard.atLeast * (1 - check.MARGIN);
    expect([broken(least), broken(least + 0.01), broken(least - 0.01), broken(NaN)]).toEqual([0, 0, 1, 1]);
  });

  it('passes if one round reaches the goal, because then only the machine is busy', () => {
    expect([broken(0.5, guard.atLeast), broken(0.5, guard.atLeast - 0.01)]).toEqual([0, 1]);
  });
});

describe('a sample of a benchmark', () => {
  const folder = tempFolder();
  const run = async (source: string, args: readonly string[] = []) =>
    bench.sample(await folder.file('one.mjs', source), args);

  it('is the last line of a new process, which receives the arguments', async () => {
    const source = `console.log('hello'); console.log(JSON.stringify({ args: process.argv.slice(2), gc: typeof gc }));`;
    expect(await run(source, ['a', '1'])).toEqual({ args: ['a', '1'], gc: 'function' });
  });

  it.each([
    ['exits with an error, with its stderr', `console.error('no luck'); process.exit(3);`, /ended with 3\n[^]*no luck/],
    ['prints no JSON', `console.log('done');`, /not JSON: done/],
  ])('makes the benchmark fail if its process %s', async (_, source, message) => {
    await expect(run(source)).rejects.toThrow(message);
  });
});

interface OnRead {
  readonly buffer: () => Buffer;
  readonly callback: (length: number, into: Buffer) => boolean;
}
interface Batch {
  readonly bytes: Buffer;
  readonly frames: number;
  readonly frameBytes: number;
}
const { ReplayedSocket } = (await benchModule('replay/replayed-socket.mjs')) as {
  ReplayedSocket: new (origin: string, onread?: OnRead) => Socket;
};
const { batch } = (await benchModule('support/frames.mjs')) as {
  batch: (of: { size: number; kind: string }) => Batch;
};

describe('a replayed socket', () => {
  const expected = batch({ size: 4096, kind: 'text' }).bytes.subarray(0, 300_000);

  /** Resolves with the first bytes after the response, which the socket passes to `take`. */
  const received = (open: (take: (bytes: Buffer) => void) => Socket) =>
    new Promise<Buffer>((resolve) => {
      let all = Buffer.alloc(0);
      const socket = open((bytes) => {
        all = Buffer.concat([all, bytes]);
        const end = all.indexOf('\r\n\r\n') + 4;
        if (end < 4 || all.length < end + 300_000) return;
        socket.destroy();
        resolve(all.subarray(end, end + 300_000));
      });
      socket.write('GET /4096/text HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n');
    });

  it('emits the frames of the sender as data', async () => {
    const bytes = await received((take) => new ReplayedSocket('ws://127.0.0.1:1').on('data', take));
    expect(bytes.equals(expected)).toBe(true);
  });

  it('reads them into a buffer of the caller, which is smaller than a chunk', async () => {
    const memory = Buffer.alloc(1_000);
    const bytes = await received((take) => {
      const callback = (count: number) => {
        take(Buffer.from(memory.subarray(0, count)));
        return true;
      };
      return new ReplayedSocket('ws://127.0.0.1:1', { buffer: () => memory, callback });
    });
    expect(bytes.equals(expected)).toBe(true);
  });
});

// The types of `ws` do not include it.
const { Receiver } = ws as unknown as { Receiver: new () => Writable };

/** Reads frames as `ws` does. */
const messagesOf = async (bytes: Buffer): Promise<readonly { data: Buffer; isBinary: boolean }[]> => {
  const receiver = new Receiver();
  const messages: { data: Buffer; isBinary: boolean }[] = [];
  receiver.on('message', (data: Buffer, isBinary: boolean) => messages.push({ data, isBinary }));
  receiver.end(bytes);
  await once(receiver, 'finish');
  return messages;
};

describe('a batch of the benchmarks', () => {
  it.each([
    [200, 'text'],
    [65_536, 'text'],
    [200, 'unicode'],
    [1024, 'batches'],
    [200, 'binary'],
  ])('has complete frames of JSON of exactly %d bytes: %s', async (size, kind) => {
    const { bytes, frames, frameBytes } = batch({ size, kind });
    const messages = await messagesOf(bytes);
    expect(messages.length).toBe(frames);
    expect(bytes.length).toBe(frames * frameBytes);
    expect(new Set(messages.map(({ data }) => data.length))).toEqual(new Set([size]));
    expect(messages.every(({ isBinary }) => isBinary === (kind === 'binary'))).toBe(true);
    for (const { data } of messages.slice(0, 8))
      expect(JSON.stringify(JSON.parse(data.toString()))).toBe(data.toString());
  });
});
