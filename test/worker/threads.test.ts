import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isUtf8 } from 'node:buffer';
import { Agent } from 'node:https';
import { setImmediate as turn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Observable, VirtualTimeScheduler } from 'rxjs';
import { Client } from 'undici';
import { resolveTicketOptions, type Settings } from '../../src/feed/options.js';
import { createTradeFeedError, tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../src/protocol/frame.js';
import { Secret } from '../../src/protocol/secret.js';
import { type Block, emitFrames, OpenBlock, rowBytes } from '../../src/worker/block.js';
import { fromCloneable, keepThrown, standIn, type Thrown, toCloneable } from '../../src/worker/errors.js';
import { workerEnvironment } from '../../src/worker/feed-in-worker.js';
import { HandOver, Store } from '../../src/worker/hand-over.js';
import { countHandled, createProgress, type EventItem, type Item } from '../../src/worker/messages.js';
import { cloneableSettings, networkDefaults, restoreSettings, setNetworkDefaults } from '../../src/worker/settings.js';
import { cases } from '../support/cases.js';

const sized = (bytes = 100): Frame => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, 1, 1);
const failed = { type: 'error', error: { kind: 'thrown', id: 1, message: undefined } } as const;

const watermarksOf = (batches: readonly (readonly Item[])[]) =>
  batches.map((items) => {
    const last = items.at(-1);
    return last?.type === 'event' && last.event.type === 'watermark' ? last.event.at : undefined;
  });

const start = (capacityBytes = 2 ** 28) => {
  const progress = createProgress();
  const batches: (readonly Item[])[] = [];
  const handOver = new HandOver(
    (items, buffers) => {
      // The very same objects. jest would compare them byte by byte.
      const blocks = items.flatMap((item) => (item.type === 'frames' ? [item.bytes] : []));
      expect(buffers).toHaveLength(blocks.length);
      expect(blocks.every((block, n) => block === buffers[n])).toBe(true);
      batches.push(items);
    },
    progress,
    capacityBytes,
  );
  const counts = () =>
    batches.map((items) => items.reduce((sum, item) => sum + (item.type === 'frames' ? item.count : 0), 0));
  return {
    progress,
    batches,
    handOver,
    counts,
    put: (count: number, bytes?: number) => Array.from({ length: count }, () => handOver.addFrame(sized(bytes))),
  };
};

describe('the hand-over', () => {
  it('sends all frames of a turn at its end while the main thread keeps up', async () => {
    const { put, counts, handOver, batches, progress } = start();
    put(3);
    expect(counts()).toEqual([]);
    await turn();
    expect(counts()).toEqual([3]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    handOver.addEvent(failed);
    await turn();
    expect(counts()).toEqual([3, 1]);
    expect(batches[1]?.at(-2)).toBe(failed);
    expect(watermarksOf(batches)).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('sends two batches ahead, and the rest together once one was handled', async () => {
    const { put, counts, handOver, progress } = start();
    for (const count of [1, 2, 3, 4]) {
      put(count);
      await turn();
    }
    expect(counts()).toEqual([1, 2]);
    expect(countHandled(progress)).toBe(true);
    handOver.resume();
    expect(counts()).toEqual([1, 2, 7]);
    expect(countHandled(progress)).toBe(false);
    put(1);
    await turn();
    expect(counts()).toEqual([1, 2, 7, 1]);
  });

  it('says with each batch up to what time all frames were sent', async () => {
    const { handOver, batches, progress } = start();
    const receivedAt = Date.now() - 1_000;
    const read = (bytes: number) => new Frame('market', Buffer.from(new ArrayBuffer(bytes)), false, receivedAt, 1);
    // Sends a block during a read: more frames of that read, with the same time, follow.
    for (let n = 0; n < 6; n += 1) handOver.addFrame(read(20_000));
    expect(watermarksOf(batches)).toEqual([receivedAt]);
    const before = Date.now();
    await turn();
    expect(watermarksOf(batches)[1]).toBeGreaterThanOrEqual(before);
    // With two unhandled batches, the watermark isn't later than the waiting frames, whatever the clock shows.
    for (let n = 0; n < 200; n += 1) handOver.addFrame(read(20_000));
    await turn();
    expect(batches).toHaveLength(2);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches).slice(2)).toEqual([receivedAt]);
    countHandled(progress);
    handOver.resume();
    expect(watermarksOf(batches)[3]).toBeGreaterThanOrEqual(before);
  });

  it('sends a watermark on request, unless frames wait or a batch is unhandled', async () => {
    const { handOver, batches, put } = start();
    const before = Date.now();
    handOver.sendWatermark();
    expect(watermarksOf(batches)[0]).toBeGreaterThanOrEqual(before);
    expect(batches[0]).toHaveLength(1);
    put(1);
    handOver.sendWatermark();
    expect(batches).toHaveLength(1);
    await turn();
    handOver.sendWatermark();
    expect(batches).toHaveLength(2);
  });

  it('counts unhandled batches against the capacity', async () => {
    const { put, counts, handOver, progress, batches } = start(640_000);
    put(30, 50_000);
    await turn();
    const [ahead] = [counts().reduce((a, b) => a + b)];
    countHandled(progress);
    countHandled(progress);
    handOver.resume();
    const missed = batches.flat().find(({ type }) => type === 'missed');
    expect(missed).toMatchObject({ type: 'missed' });
    const all = counts().reduce((a, b) => a + b);
    expect(all - ahead).toBeGreaterThan(0);
    expect(all + (missed as { readonly frames: number }).frames).toBe(30);
  });
});

const numbered = (n: number, bytes = 1_000): Frame =>
  new Frame('market', Buffer.alloc(bytes, `${n} `.padEnd(10)), false, n, 1);
const opened = (connection: number): EventItem => ({
  type: 'event',
  event: { type: 'opened', at: 0, feed: 'market', connection },
});

/** Summarizes items: the frames' numbers, the dropped frames and the events. */
const inShort = (items: readonly Item[]): readonly (string | number)[] =>
  items.flatMap((item): readonly (string | number)[] => {
    if (item.type === 'missed') return [`-${item.frames} (${item.from} to ${item.to})`];
    if (item.type !== 'frames') return [item.type === 'event' ? item.event.type : item.type];
    return framesOf(item).map((each) => Number.parseInt(each.text(), 10));
  });
const fill = (store: Store, from: number, to: number, bytes?: number): void => {
  for (let n = from; n <= to; n += 1) {
    store.addFrame(numbered(n, bytes));
    store.shrink();
  }
};
const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('the store of a worker', () => {
  it('drops the oldest blocks beyond its capacity, reports them in their place, and never drops events', () => {
    const store = new Store(64_000);
    store.addEvent(opened(1));
    fill(store, 1, 40);
    store.addEvent(opened(2));
    fill(store, 41, 120);
    const items = inShort(store.take(1e6));
    // Each frame has a row of 16 bytes, except the last, which isn't in a block yet: 62 frames fit, plus the last.
    expect(items).toEqual(['opened', '-40 (1 to 40)', 'opened', '-17 (41 to 57)', ...range(58, 120)]);
  });

  it('counts taken blocks until they are released', () => {
    const store = new Store(64_000);
    fill(store, 1, 60);
    const taken = store.take(1e6);
    fill(store, 61, 90);
    expect(inShort(taken)).toEqual(range(1, 60));
    expect(inShort(store.take(1e6))[0]).toBe('-27 (61 to 87)');
    store.release(63 * 1_016);
    fill(store, 101, 140);
    expect(inShort(store.take(1e6))).toEqual(range(101, 140));
  });

  it('drops a frame larger than the capacity, unless it is taken first', () => {
    const store = new Store(64_000);
    fill(store, 1, 1, 100_000);
    expect(inShort(store.take(1))).toEqual([1]);
    store.release(100_016);
    fill(store, 2, 2, 100_000);
    store.addFrame(numbered(3));
    store.shrink();
    expect(inShort(store.take(1e6))).toEqual(['-1 (2 to 2)', 3]);
  });

  it('never stores more than its capacity plus one read, and reports every dropped frame', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 5_000, max: 50_000 }),
        fc.array(fc.oneof(fc.integer({ min: 1, max: 4_000 }), fc.constantFrom('take', 'event')), {
          maxLength: 200,
        }),
        (capacity, steps) => {
          const store = new Store(capacity);
          let put = 0;
          let [events, taken, missed, added] = [0, 0, 0, 0];
          let last = 0;
          const take = () => {
            const items = store.take(10_000);
            let bytes = 0;
            for (const item of items) {
              if (item.type === 'frames') {
                bytes += item.bytes.byteLength;
                taken += item.count;
                expect(item.from).toBe(last + 1);
                last = item.to;
              } else if (item.type === 'missed') {
                missed += item.frames;
                expect([item.from, item.to - item.from + 1]).toEqual([last + 1, item.frames]);
                last = item.to;
              } else events += 1;
            }
            expect(bytes).toBeLessThanOrEqual(Math.max(capacity, 10_000) + 4_100);
            store.release(bytes);
          };
          for (const step of steps) {
            if (step === 'take') take();
            else if (step === 'event') {
              store.addEvent(opened(1));
              added += 1;
            } else {
              // Two frames from one read.
              const read = Buffer.alloc(step);
              for (const part of [read.subarray(0, step / 2), read.subarray(step / 2)]) {
                put += 1;
                store.addFrame(new Frame('market', part, false, put, 1));
                store.shrink();
              }
            }
          }
          while (!store.isEmpty()) take();
          expect({ events, all: taken + missed }).toEqual({ events: added, all: put });
        },
      ),
      { numRuns: cases(100) },
    );
  });
});

const frame = (data: Buffer, isBinary = false, receivedAt = 1): Frame =>
  new Frame('raw', data, isBinary, receivedAt, 3);

const framesOf = (block: Block | undefined): readonly Frame[] => {
  const frames: Frame[] = [];
  if (block) new Observable<Frame>((each) => emitFrames(block, 3, each)).subscribe((each) => frames.push(each));
  return frames;
};

/** Frames as a socket delivers them: views of chunks, some adjacent, some with holes, some in another order. */
const chunks = fc.array(
  fc.record({
    bytes: fc.uint8Array({ minLength: 0, maxLength: 80 }),
    cuts: fc.array(fc.tuple(fc.nat(80), fc.nat(20), fc.boolean(), fc.nat()), { maxLength: 12 }),
  }),
  { maxLength: 6 },
);
type Chunk = typeof chunks extends fc.Arbitrary<readonly (infer T)[]> ? T : never;
const framesIn = ({ bytes, cuts }: Chunk) =>
  cuts.map(([start, length, isBinary, at]) => {
    const from = Math.min(start, bytes.length);
    const data = Buffer.from(bytes.buffer, bytes.byteOffset + from, Math.min(length, bytes.length - from));
    // A connection emits only valid UTF-8 as text.
    return frame(data, isBinary || !isUtf8(data), at);
  });
const contentsOf = (frames: readonly Frame[]) =>
  frames.map(({ data, isBinary, receivedAt }) => ({ text: data.toString('latin1'), isBinary, receivedAt }));

describe('a block', () => {
  it('contains the added frames, whatever their memory, and shares none of it', () => {
    fc.assert(
      fc.property(chunks, (all) => {
        const frames = all.flatMap(framesIn);
        const open = new OpenBlock(Infinity);
        const contents = contentsOf(frames);
        for (const each of frames) open.add(each);
        const block = open.seal();
        for (const { bytes } of all) bytes.fill(0);
        expect(open).toMatchObject({ isEmpty: true, usedBytes: 0 });
        expect(block?.count ?? 0).toBe(frames.length);
        expect(contentsOf(framesOf(block))).toEqual(contents);
        if (block) expect(block).toMatchObject({ from: frames[0]?.receivedAt, to: frames.at(-1)?.receivedAt });
      }),
      { numRuns: cases(500) },
    );
  });

  it('accepts any number of frames, of any size', () => {
    const open = new OpenBlock(Infinity);
    const sizes = Array.from({ length: 5_000 }, (_, n) => (n % 2_000 === 1_999 ? 300_000 : n % 7));
    sizes.forEach((size, n) => open.add(frame(Buffer.alloc(size), true, n)));
    const frames = framesOf(open.seal());
    expect(frames.map(({ receivedAt }) => receivedAt)).toEqual([...sizes.keys()]);
    expect(frames.map(({ byteLength }) => byteLength)).toEqual(sizes);
  });

  it('gives its memory away if most of it is used, and fills other memory next', () => {
    const open = new OpenBlock(64 * 1024);
    const add = (word: string, bytes: number) => open.add(frame(Buffer.alloc(bytes, word)));
    add('a', 1_000);
    const small = open.seal() as Block;
    const full = [...Array<string>(65).fill('b'), 'c'].map((word) => add(word, 1_000)).find(Boolean) as Block;
    add('d', 1_000);
    expect([small, full].map(({ bytes }) => bytes.byteLength)).toEqual([1_000 + rowBytes, 80 * 1024]);
    const wordOf = (block: Block) => framesOf(block).map((each) => each.text()[0]);
    expect([small, full].map(wordOf)).toEqual([['a'], Array(full.count).fill('b')]);
  });
});

const valid: TradeFeedOptions = {
  baseUrl: 'https://feed.example.com',
  apiKey: 'planted-key',
  receiveIn: 'worker',
};
const askForKey = () => Promise.resolve('key');
/** Returns the settings as the worker gets them. */
const across = (options: TradeFeedOptions): Settings =>
  restoreSettings(structuredClone(cloneableSettings(resolveTicketOptions(options))), askForKey);

describe('settings for a worker', () => {
  const client = new Client('http://127.0.0.1:1');
  const agent = new Agent();
  afterAll(async () => {
    agent.destroy();
    await client.destroy();
  });
  it.each<[string, TradeFeedOptions, string?]>([
    ['dispatcher', { dispatcher: client }],
    ['agent', { agent }],
    ['backoff.scheduler', { backoff: { scheduler: new VirtualTimeScheduler() } }],
    ['tls.ALPNCallback', { tls: { ALPNCallback: () => undefined } }],
    ['classify', { classify: (_, verdict) => verdict }, ': another thread.*leave out `receiveIn`'],
    ['backoff.random', { backoff: { random: () => 0 } }, ": another thread.*set `backoff.jitter` to 'none'"],
    ['tls.checkServerIdentity', { tls: { checkServerIdentity: () => undefined } }, ': another thread.*`tls.ca`'],
  ])('are refused at once if they are bound to this thread: %s', (...[option, options, advice = '']) => {
    const wanted = new RegExp(`\`${option}\` must be left out with \`receiveIn: 'worker'\`${advice}`);
    const message = expect.stringMatching(wanted) as unknown;
    for (const feed$ of [tradeFeed$, tradeFeedEvents$])
      expect(() => feed$('market', { ...valid, ...options })).toThrow(
        expect.objectContaining({ code: 'invalid-options', option, message }),
      );
    expect(() => tradeFeed$('market', { ...valid, ...options, receiveIn: 'main' })).not.toThrow();
  });

  it('accepts receiveBufferBytes only with a worker', () => {
    expect(() => tradeFeed$('market', { ...valid, receiveIn: 'main', receiveBufferBytes: 1 })).toThrow(
      "`receiveBufferBytes` must be left out without `receiveIn: 'worker'`",
    );
    expect(cloneableSettings(resolveTicketOptions(valid)).receiveBufferBytes).toBe(268_435_456);
    expect(cloneableSettings(resolveTicketOptions({ ...valid, receiveBufferBytes: 5 })).receiveBufferBytes).toBe(5);
  });

  it("arrive unchanged, with the key as a Secret and no functions that the user didn't pass", () => {
    const backoff = { maxAttempts: Infinity, factor: 3 };
    const settings = across({ ...valid, ticketTimeoutMs: 5, standby: true, backoff });
    const { baseUrl } = valid;
    expect(settings).toMatchObject({ baseUrl, ticketTimeoutMs: 5, standby: true, idleTimeoutMs: 30_000 });
    expect(settings.backoff).toMatchObject({ maxAttempts: Infinity, factor: 3, random: Math.random });
    expect((settings.apiKey as Secret).reveal()).toBe('planted-key');
    expect(settings).not.toHaveProperty('classify');
    expect(settings.receiveIn).toBe('worker');
    expect(inspect(settings, { depth: null, showHidden: true })).not.toContain('planted');
    expect(across({ ...valid, apiKey: () => 'mine' }).apiKey).toBe(askForKey);
  });

  it('arrive with Buffers in the TLS options', () => {
    const tls = { passphrase: 'none', crl: [], ciphers: 'HIGH', ticketKeys: Buffer.alloc(48) };
    const settings = across({ ...valid, tls });
    expect(settings.tls).toMatchObject({ passphrase: 'none', crl: [], ciphers: 'HIGH' });
    expect(Buffer.isBuffer((settings.tls as Record<string, unknown>)['ticketKeys'])).toBe(true);
  });
});

it('copies the environment for a worker without the key and flags', () => {
  const environment = { ...process.env };
  Object.assign(process.env, { TRADE_FEED_API_KEY: 'planted-key', NODE_OPTIONS: '--no-warnings', PLAIN: 'yes' });
  try {
    const own = workerEnvironment();
    expect(own).toMatchObject({ PLAIN: 'yes' });
    expect(Object.keys(own)).not.toEqual(expect.arrayContaining(['TRADE_FEED_API_KEY']));
    expect(own).not.toHaveProperty('NODE_OPTIONS');
  } finally {
    for (const name of ['TRADE_FEED_API_KEY', 'NODE_OPTIONS', 'PLAIN']) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, environment);
  }
});

it('copies the network defaults of this thread', () => {
  const defaults = networkDefaults();
  try {
    const autoSelectFamily = !defaults.autoSelectFamily;
    const others: typeof defaults = {
      ...{ ...defaults, order: 'ipv4first', autoSelectFamily, attemptTimeoutMs: 1_234 },
      ...{ minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3', ciphers: 'HIGH', ecdhCurve: 'P-256', rejectUnauthorized: '1' },
    };
    setNetworkDefaults(others);
    expect(networkDefaults()).toEqual(others);
  } finally {
    setNetworkDefaults(defaults);
  }
});

/** What the main thread gets. */
const arrived = (thrown: unknown, kept: Thrown = new Map()): unknown =>
  fromCloneable(structuredClone(toCloneable(thrown)), kept);

describe('an error that is sent to another thread', () => {
  it('keeps all fields of a failure, its cause, its previous failure and its stack', () => {
    const cause = Object.assign(new Error('no route'), { code: 'EHOSTUNREACH' });
    const previous = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', uptimeMs: 7 });
    const refused = createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 5, endedAt: 1, cause });
    const failure = copyFailure(refused, { previous });
    const returned = arrived(failure) as typeof failure;
    expect(returned).toBeInstanceOf(Error);
    expect(returned.toJSON()).toEqual(failure.toJSON());
    const { message, summary, detail } = failure;
    expect(returned).toMatchObject({ message, summary, detail });
    expect(Object.keys(returned).sort()).toEqual(Object.keys(failure).sort());
    expect(returned.stack).toBe(failure.stack);
    expect(returned.cause).toEqual(cause);
    expect(returned.cause).toMatchObject({ code: 'EHOSTUNREACH', stack: cause.stack });
    expect(returned.previous?.toJSON()).toEqual(previous.toJSON());
  });

  it.each([
    ['an error of another class', new RangeError('too far'), { name: 'RangeError', message: 'too far' }],
    ['nothing', undefined, { message: 'undefined' }],
  ])('becomes an error with the same message: %s', (_what, thrown, expected) => {
    const returned = arrived(thrown);
    expect(returned).toBeInstanceOf(Error);
    expect(returned).toMatchObject(expected);
  });

  it.each([new Error('mine'), 'mine', undefined, { mine: true }, () => 1])(
    'is the same object if apiKey threw it: %p',
    (thrown) => {
      const kept: Thrown = new Map();
      const there = standIn(structuredClone(keepThrown(kept, 1, thrown)));
      expect(there instanceof Error).toBe(thrown instanceof Error);
      if (thrown instanceof Error) expect(there).toMatchObject({ message: 'mine' });
      const failure = createTradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', cause: there });
      expect(arrived(there, kept)).toBe(thrown);
      expect((arrived(failure, kept) as Error).cause).toBe(thrown);
    },
  );

  it('is kept only while a failure can have it as its cause', () => {
    const kept: Thrown = new Map();
    const errors = Array.from({ length: 100 }, (_, n) => new Error(`${n}`));
    const there = errors.map((error, n) => standIn(keepThrown(kept, n, error)));
    const back = there.map((each) => arrived(each, kept));
    expect(back.map((each) => (each as Error).message)).toEqual(there.map((_, n) => `${n}`));
    expect(back[99]).toBe(errors[99]);
    expect(back[0]).not.toBe(errors[0]);
  });
});
