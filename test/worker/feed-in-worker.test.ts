import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { firstValueFrom, lastValueFrom, take, takeWhile, tap, toArray } from 'rxjs';
import {
  type FeedEvent,
  frames,
  shareFeed,
  TradeFeedError,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
  type Verdict,
} from '../../src/index.js';
import { createRelay } from '../../src/relay/index.js';
import { feedEvents$ } from '../../src/trade-feed.js';
import { fakeTimers } from '../support/fake-timers.js';
import { optionsFor, plantedKey, until } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import { workers } from '../support/start-worker.js';
import { accept, close, issue, refuse, startWire, text, type Wire, type WireScript } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';

const program = (name: string): string => fileURLToPath(new URL(`programs/${name}`, import.meta.url));
const inWorker = (wire: { readonly baseUrl: string }, options: TradeFeedOptions = {}): TradeFeedOptions =>
  optionsFor(wire, { receiveIn: 'worker', ...options });
/** Waits for the end of a worker. Returns its exit code, and `undefined` if it had ended before. */
const endOf = async (worker: Worker | undefined): Promise<unknown> =>
  worker && worker.threadId !== -1 ? new Promise((resolve) => worker.once('exit', resolve)) : undefined;
/** Waits until the first worker was started: its file is imported on demand. */
const firstWorker = async (): Promise<Worker> => {
  return waitFor(() => workers.started[0]);
};
const errorOf = async (options: TradeFeedOptions): Promise<unknown> => {
  try {
    return await lastValueFrom(tradeFeed$('market', options));
  } catch (error) {
    return error;
  }
};

beforeEach(() => void workers.started.splice(0));
afterEach(async () => {
  workers.instead = undefined;
  await Promise.all(workers.started.map(endOf));
});

describe('unsubscribing from a feed in a worker', () => {
  const silence = (): void => undefined;
  const moments: readonly (readonly [FeedEvent['type'], WireScript])[] = [
    ['ticket-requested', { ticket: [silence] }],
    ['ticket-issued', { handshake: [silence] }],
    ['opened', {}],
    ['frame', { handshake: [accept(text('a'), text('b'))] }],
    ['reconnecting', { ticket: [refuse(429, { 'retry-after': '600' })] }],
  ];

  it.each(moments)('during %s ends the worker and leaves no connection', async (type, script) => {
    await using wire = await startWire(script);
    const events = await until(tradeFeedEvents$('market', inWorker(wire)), (event) => event.type === type);
    expect(events.at(-1)?.type).toBe(type);
    expect(await endOf(workers.started[0])).toBe(0);
    expect(workers.started).toHaveLength(1);
    const wasOpen = type === 'opened' || type === 'frame';
    expect(wire.opcodes).toEqual(wasOpen ? [8] : []);
    // The handshake that follows a ticket may already be sent.
    if (type !== 'ticket-issued') expect(wire.handshakes).toHaveLength(Number(wasOpen));
  });

  it('before the worker is ready terminates it, without any connection', async () => {
    await using wire = await startWire();
    const subscription = tradeFeed$('market', inWorker(wire)).subscribe();
    const worker = await firstWorker();
    subscription.unsubscribe();
    await endOf(worker);
    expect(wire.connections).toBe(0);
  });

  it('at once starts no worker', async () => {
    await using wire = await startWire();
    tradeFeed$('market', inWorker(wire)).subscribe().unsubscribe();
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(workers.started).toEqual([]);
    expect(wire.connections).toBe(0);
  });

  it('is cold: each subscription has its own worker, which starts with the subscription', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))] });
    const feed$ = tradeFeed$('market', inWorker(wire)).pipe(take(1));
    expect(workers.started).toEqual([]);
    await Promise.all([firstValueFrom(feed$), firstValueFrom(feed$)]);
    expect(workers.started).toHaveLength(2);
    expect(wire.tickets).toHaveLength(2);
  });

  it('aborts a closing handshake that takes longer than a second', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))], ignoresClose: true });
    await firstValueFrom(tradeFeed$('market', inWorker(wire)));
    expect(await endOf(workers.started[0])).toBe(0);
    expect(wire.opcodes).toEqual([8]);
  });

  it('terminates a worker that does not react within 3 s', async () => {
    workers.instead = program('hang.mjs');
    await using wire = await startWire();
    const subscription = tradeFeed$('market', inWorker(wire)).subscribe();
    const worker = await firstWorker();
    await new Promise((resolve) => worker.once('message', resolve));
    const terminate = jest.spyOn(worker, 'terminate');
    using _timers = fakeTimers();
    subscription.unsubscribe();
    jest.advanceTimersByTime(2_999);
    expect(terminate).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(await endOf(worker)).toBe(1);
  });

  it('emits nothing more, not even the rest of a batch', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b'), text('c'), close(1001))] });
    const words: string[] = [];
    const subscription = tradeFeedEvents$('market', inWorker(wire)).subscribe((event) => {
      if (event.type !== 'watermark') words.push(event.type === 'frame' ? event.text() : event.type);
      if (words.at(-1) === 'b') subscription.unsubscribe();
    });
    const worker = await firstWorker();
    await new Promise((resolve) => worker.once('exit', resolve));
    expect(words).toEqual(['ticket-requested', 'ticket-issued', 'opened', 'a', 'b']);
  });

  it('calls onClosing with a promise that resolves when the worker has ended', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))] });
    const closing: Promise<void>[] = [];
    const owner = { user: { where: 'a test' }, onClosing: (closed: Promise<void>) => void closing.push(closed) };
    await firstValueFrom(feedEvents$('market', inWorker(wire), owner).pipe(frames()));
    expect(closing).toHaveLength(1);
    await closing[0];
    expect(workers.started[0]?.threadId).toBe(-1);
    expect(wire.opcodes).toEqual([8]);
  });
});

describe('a worker that ends early', () => {
  it('is replaced by another one, with a gap and the next connection number', async () => {
    await using wire = await startWire({
      handshake: [accept(text('a')), accept(text('b'), close(1001)), accept(text('c'))],
    });
    const events = await until(
      tradeFeedEvents$('market', inWorker(wire)).pipe(
        tap((event) => {
          if (event.type === 'frame' && event.text() === 'a') void workers.started[0]?.terminate();
        }),
      ),
      (event) => event.type === 'frame' && event.text() === 'c',
    );
    const words = events.map((event) => {
      if (event.type === 'frame') return `${event.text()} of ${event.connection}`;
      if (event.type === 'opened') return `opened ${event.connection}`;
      return 'failure' in event ? `${event.type}: ${event.failure.code}` : event.type;
    });
    expect(words.filter((word) => !/^(ticket|watermark)/.test(word))).toEqual([
      ...['opened 1', 'a of 1', 'disconnected: receiver-failed', 'reconnecting'],
      ...['opened 2', 'gap: receiver-failed', 'b of 2', 'disconnected: server-shutdown', 'reconnecting'],
      ...['opened 3', 'gap: server-shutdown', 'c of 3'],
    ]);
    const lost = events.find((event) => event.type === 'disconnected') as Extract<FeedEvent, { type: 'disconnected' }>;
    expect(lost.failure).toMatchObject({ stage: 'stream', verdict: 'renew', framesReceived: 1 });
    expect(lost.failure.message).toContain('it exited with code 1');
    const gap = events.find((event) => event.type === 'gap') as Extract<FeedEvent, { type: 'gap' }>;
    const frame = events.find((event) => event.type === 'frame') as Extract<FeedEvent, { type: 'frame' }>;
    expect(gap.from).toBe(frame.receivedAt);
    expect(workers.started).toHaveLength(2);
  });

  it('fails in stage ticket if there was no open connection', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), close(1001))] });
    const backoff = { initialDelayMs: 60_000, maxDelayMs: 60_000, jitter: 'none', maxAttempts: 1 } as const;
    const feed$ = tradeFeedEvents$('market', inWorker(wire, { backoff }));
    const events = until(
      feed$.pipe(
        tap((event) => {
          if (event.type === 'reconnecting') void workers.started[0]?.terminate();
        }),
      ),
      (event) => event.type === 'disconnected' && event.failure.code === 'receiver-failed',
    );
    const lost = (await events).at(-1) as Extract<FeedEvent, { type: 'disconnected' }>;
    expect(lost.failure).toMatchObject({ stage: 'ticket', framesReceived: 0, uptimeMs: 0 });
  });

  it('counts as an attempt, and its failure has a cause without the key', async () => {
    workers.instead = program('throw.mjs');
    await using wire = await startWire();
    const error = await errorOf(inWorker(wire, { backoff: { maxAttempts: 1 } }));
    expect(error).toMatchObject({
      code: 'retries-exhausted',
      cause: { code: 'receiver-failed', verdict: 'renew', stage: 'ticket', cause: { code: 'ERR_PLANTED' } },
    });
    expect(inspect(error, { depth: null, showHidden: true })).toContain('[secret] was in my hand');
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain(plantedKey);
  });

  it('stops the feed if `classify` returns stop', async () => {
    workers.instead = program('throw.mjs');
    await using wire = await startWire();
    const classify = jest.fn((_failure: TradeFeedError, _verdict: Verdict) => 'stop' as const);
    const error = await errorOf(inWorker(wire, { classify }));
    expect(error).toMatchObject({ code: 'receiver-failed', verdict: 'stop' });
    expect(classify).toHaveBeenCalledWith(expect.any(TradeFeedError), 'renew');
  });

  it('stops the feed if it cannot be started', async () => {
    workers.instead = program('there-is-none.mjs');
    await using wire = await startWire();
    const error = await errorOf(inWorker(wire));
    expect(error).toMatchObject({ code: 'receiver-failed', verdict: 'stop', stage: 'ticket' });
    expect((error as Error).message).toMatch(/could not be started \(.*there-is-none/);
    workers.instead = 'no path';
    expect(await errorOf(inWorker(wire))).toMatchObject({ code: 'receiver-failed', verdict: 'stop' });
    expect(wire.connections).toBe(0);
  });
});

describe('functions of the user', () => {
  const thrown = { mine: true };
  const throwIt = (): never => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- a user may
    throw thrown;
  };

  it.each<[string, TradeFeedOptions]>([
    ['classify', { classify: throwIt }],
    ['backoff.random', { backoff: { random: throwIt } }],
  ])('that throw: the error of the feed is the same object: %s', async (_name, options) => {
    await using wire = await startWire({ ticket: [refuse(500)] });
    expect(await errorOf(inWorker(wire, options))).toBe(thrown);
  });

  it('that throw a failure stop the feed with it', async () => {
    await using wire = await startWire({ ticket: [refuse(500)] });
    const classify = (failure: TradeFeedError) => {
      throw failure;
    };
    const error = await errorOf(inWorker(wire, { classify }));
    expect(error).toBeInstanceOf(TradeFeedError);
    expect(error).toMatchObject({ code: 'ticket-request-failed', verdict: 'stop', status: 500 });
    expect((error as TradeFeedError).advice).toContain('`classify` threw this');
  });

  it('that throw instead of returning a key: the exception is the cause of each failure', async () => {
    await using wire = await startWire();
    const causes = [new Error('first'), thrown];
    let calls = 0;
    const apiKey = () => {
      throw causes[calls++] as Error;
    };
    const error = (await errorOf(inWorker(wire, { apiKey, backoff: { maxAttempts: 1 } }))) as TradeFeedError;
    expect(error.code).toBe('retries-exhausted');
    expect((error.cause as TradeFeedError).cause).toBe(thrown);
    expect(error.previous?.cause).toBe(causes[0]);
  });

  it('run on this thread: apiKey before every ticket, random before every wait', async () => {
    await using wire = await startWire({ handshake: [accept(close(1001)), accept(close(1001)), accept(text('a'))] });
    let keys = 0;
    const random = jest.fn(() => 0.5);
    const events = await until(
      tradeFeedEvents$(
        'market',
        inWorker(wire, {
          apiKey: () => Promise.resolve(`planted-${(keys += 1)}`),
          classify: (failure, verdict) => (failure.code === 'server-shutdown' ? 'backoff' : verdict),
          backoff: { initialDelayMs: 4, maxDelayMs: 4, random },
        }),
      ),
      (event) => event.type === 'frame',
    );
    expect(wire.tickets.map(({ headers }) => headers['x-api-key'])).toEqual(['planted-1', 'planted-2', 'planted-3']);
    expect(random).toHaveBeenCalledTimes(2);
    expect(events.flatMap((event) => (event.type === 'reconnecting' ? [event.delayMs] : []))).toEqual([2, 2]);
  });
});

describe('a blocked main thread', () => {
  const stand = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

  it('loses no frame that its worker can store', async () => {
    const texts = Array.from({ length: 500 }, (_, n) => text(`${n}`.padEnd(1_000)));
    await using wire = await startWire({ handshake: [accept(...texts)] });
    const numbers = await firstValueFrom(
      tradeFeed$('market', inWorker(wire)).pipe(
        tap((frame) => {
          if (Number(frame.text()) % 100 === 0) stand(20);
        }),
        take(500),
        toArray(),
      ),
    );
    expect(numbers.map((frame) => Number(frame.text()))).toEqual(Array.from(texts.keys()));
  });

  it('receives a gap with the number of frames that its worker dropped, in their place', async () => {
    const texts = Array.from({ length: 1_500 }, (_, n) => text(`${n}`.padEnd(1_000)));
    await using wire = await startWire({ handshake: [accept(text('first'), ...texts, text('last'))] });
    let expected = 0;
    let missed = 0;
    const events$ = tradeFeedEvents$('market', inWorker(wire, { receiveBufferBytes: 100_000 })).pipe(
      tap((event) => {
        if (event.type === 'gap') {
          expect(event).toMatchObject({ durationMs: event.to - event.from });
          expect(event.failure).toMatchObject({ code: 'receiver-too-slow', stage: 'stream', verdict: 'renew' });
          expected += event.missed ?? 0;
          missed += event.missed ?? 0;
        }
        if (event.type !== 'frame') return;
        if (event.text() === 'first') stand(500);
        else if (event.text() !== 'last') expect(Number(event.text())).toBe(expected++);
      }),
      takeWhile((event) => event.type !== 'frame' || event.text() !== 'last'),
    );
    await lastValueFrom(events$);
    expect(missed).toBeGreaterThan(0);
    expect(expected).toBe(1_500);
  });
});

describe('operators', () => {
  it('work with a feed in a worker: shareFeed and a relay', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b'))] });
    const events$ = tradeFeedEvents$('market', inWorker(wire)).pipe(shareFeed({ lingerMs: 0 }));
    const relay = createRelay(events$, { lingerMs: 0 });
    const [words, messages] = await Promise.all([
      until(events$, (event) => event.type === 'frame' && event.text() === 'b'),
      until(relay.messages$({}), ({ data }) => data.includes('"data":"b"')),
    ]);
    const types = words.map(({ type }) => type).filter((type) => type !== 'watermark');
    expect(types).toEqual(['ticket-requested', 'ticket-issued', 'opened', 'frame', 'frame']);
    expect(messages.length).toBeGreaterThan(0);
    relay.close();
    expect(workers.started).toHaveLength(1);
  });
});

describe('a process', () => {
  const env = ({ baseUrl }: Wire) => ({ TRADE_FEED_BASE_URL: baseUrl, TRADE_FEED_API_KEY: plantedKey });

  it.each<[string, readonly string[], Record<string, string>]>([
    ['without flags', [], {}],
    ['with flags and NODE_OPTIONS', ['--expose-gc'], { NODE_OPTIONS: '--max-old-space-size=512 --no-warnings' }],
  ])('whose only work was a feed in a worker exits %s', async (_what, flags, more) => {
    await using wire = await startWire({ ticket: [issue()], handshake: [accept(text('a'), text('b'), text('c'))] });
    const ended = await runProgram('../../worker/programs/take-three.mjs', [], { ...env(wire), ...more }, flags);
    expect(ended).toEqual({ code: 0, signal: null, stdout: 'a\nb\nc\n', stderr: '' });
    expect(wire.tickets[0]?.headers['x-api-key']).toBe(plantedKey);
  });
});
