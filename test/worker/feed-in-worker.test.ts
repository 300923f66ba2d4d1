/** @lane processes */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { firstValueFrom, lastValueFrom, takeWhile, tap } from 'rxjs';
import { feedEvents$ } from '../../src/feed/trade-feed.js';
import {
  type FeedEvent,
  frames,
  tradeFeed$,
  TradeFeedError,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { isAllCases, itInCi } from '../support/cases.js';
import { failureRow } from '../support/failure-table.js';
import { fakeTimers } from '../support/fake-timers.js';
import { optionsFor, outcomeOf, plantedKey, until } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import { workers } from '../support/start-worker.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { accept, close, issue, refuse, startWire, text, type Wire, type WireScript } from '../support/wire.js';
import { type Row, rows as wireFailures, untrusted } from '../transport/wire-failures.js';

jest.setTimeout(startTestLimitMs);

const program = (name: string): string => fileURLToPath(new URL(`programs/${name}`, import.meta.url));
const inWorker = (wire: { readonly baseUrl: string }, options: TradeFeedOptions = {}): TradeFeedOptions =>
  optionsFor(wire, { receiveIn: 'worker', ...options });
/** Waits until a worker ends. Returns its exit code; `undefined` if it had already ended. */
const endOf = async (worker: Worker | undefined): Promise<unknown> =>
  worker && worker.threadId !== -1 ? new Promise((resolve) => worker.once('exit', resolve)) : undefined;
/** Waits until the first worker starts: its file is imported on demand. */
const firstWorker = async (): Promise<Worker> => {
  return waitFor(() => workers.started[0], { limitMs: startLimitMs });
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
    // The handshake that follows a ticket may already have been sent.
    if (type !== 'ticket-issued') expect(wire.handshakes).toHaveLength(Number(wasOpen));
  });

  it('before the worker is ready terminates it, and no connection is opened', async () => {
    await using wire = await startWire();
    const subscription = tradeFeed$('market', inWorker(wire)).subscribe();
    const worker = await firstWorker();
    subscription.unsubscribe();
    await endOf(worker);
    expect(wire.connections).toBe(0);
  });

  it("terminates a worker that doesn't react within 3 s", async () => {
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

  it('calls onClosing with a promise that resolves once the worker has ended', async () => {
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
    expect(words.filter((word) => !/^(ticket|watermark)/.test(word)).join()).toBe(
      'opened 1,a of 1,disconnected: receiver-failed,reconnecting,' +
        'opened 2,gap: receiver-failed,b of 2,disconnected: server-shutdown,reconnecting,' +
        'opened 3,gap: server-shutdown,c of 3',
    );
    const lost = events.find((event) => event.type === 'disconnected') as Extract<FeedEvent, { type: 'disconnected' }>;
    expect(lost.failure).toMatchObject({ stage: 'stream', verdict: 'renew', framesReceived: 1 });
    expect(lost.failure.message).toContain('it exited with code 1');
    const gap = events.find((event) => event.type === 'gap') as Extract<FeedEvent, { type: 'gap' }>;
    const frame = events.find((event) => event.type === 'frame') as Extract<FeedEvent, { type: 'frame' }>;
    expect(gap.from).toBe(frame.receivedAt);
    expect(workers.started).toHaveLength(2);
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

  it('is tried again if its code is missing for a moment, once the feed has worked', async () => {
    await using wire = await startWire({ handshake: [accept(text('a')), accept(text('b'))] });
    let missing = 0;
    const events = await until(tradeFeedEvents$('market', inWorker(wire)), (event) => {
      if (event.type === 'frame' && event.text() === 'a') {
        workers.instead = program('there-is-none.mjs');
        void workers.started[0]?.terminate();
      }
      if (event.type === 'disconnected' && event.failure.message.includes('there-is-none')) missing += 1;
      if (missing === 2) workers.instead = undefined;
      return event.type === 'frame' && event.text() === 'b';
    });
    const reconnects = events.flatMap((event) => (event.type === 'reconnecting' ? event.verdict : []));
    expect(reconnects.slice(0, 3)).toEqual(['renew', 'backoff', 'backoff']);
  });

  it("stops the feed if it can't be started", async () => {
    workers.instead = program('there-is-none.mjs');
    await using wire = await startWire();
    const error = await errorOf(inWorker(wire));
    expect(error).toMatchObject({ code: 'receiver-failed', verdict: 'stop', stage: 'ticket' });
    expect((error as Error).message).toMatch(/couldn't be started \(.*there-is-none/);
    workers.instead = 'no path';
    expect(await errorOf(inWorker(wire))).toMatchObject({ code: 'receiver-failed', verdict: 'stop' });
    expect(wire.connections).toBe(0);
  });
});

it('what an `apiKey` function throws becomes the cause of each failure, as the same object', async () => {
  const causes = [new Error('first'), { mine: true }];
  let calls = 0;
  const apiKey = (): never => {
    throw causes[calls++] as Error;
  };
  await using wire = await startWire();
  const error = (await errorOf(inWorker(wire, { apiKey, backoff: { maxAttempts: 1 } }))) as TradeFeedError;
  expect(error.code).toBe('retries-exhausted');
  expect((error.cause as TradeFeedError).cause).toBe(causes[1]);
  expect(error.previous?.cause).toBe(causes[0]);
});

const stand = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

it('a blocked main thread gets a gap in place of the frames that its worker dropped, with their number', async () => {
  const count = 1_500;
  const texts = Array.from({ length: count }, (_, n) => text(`${n}`.padEnd(1_000)));
  await using wire = await startWire({ handshake: [accept(...texts)] });
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
      expect(Number(event.text())).toBe(expected++);
      // On a busy machine, the first frames may be missing.
      if (missed === 0) stand(200);
    }),
    takeWhile(({ type }) => type !== 'frame' || expected < count),
  );
  await lastValueFrom(events$);
  expect(missed).toBeGreaterThan(0);
  expect(expected).toBe(count);
});

describe('a process', () => {
  const env = ({ baseUrl }: Wire) => ({ TRADE_FEED_BASE_URL: baseUrl, TRADE_FEED_API_KEY: plantedKey });

  itInCi.each<[string, readonly string[], Record<string, string>]>([
    ['without flags', [], {}],
    ['with flags and NODE_OPTIONS', ['--expose-gc'], { NODE_OPTIONS: '--max-old-space-size=512 --no-warnings' }],
  ])(
    'whose only work was a feed in a worker exits %s',
    async (_what, flags, more) => {
      await using wire = await startWire({ ticket: [issue()], handshake: [accept(text('a'), text('b'), text('c'))] });
      const ended = await runProgram('../../worker/programs/take-three.mjs', [], { ...env(wire), ...more }, flags);
      expect(ended).toEqual({ code: 0, signal: null, stdout: 'a\nb\nc\n', stderr: '' });
      expect(wire.tickets[0]?.headers['x-api-key']).toBe(plantedKey);
    },
    120_000,
  );
});

/** The rows with different keys. */
const firstBy = (all: readonly Row[], keyOf: (row: Row) => unknown): readonly Row[] => {
  const keys = all.map(keyOf);
  return all.filter((_, n) => keys.indexOf(keys[n]) === n);
};
const kindOf = (row: Row): unknown => {
  const { stage, verdict } = failureRow(row);
  return isAllCases ? failureRow(row) : `${stage} ${verdict}`;
};

/** Each way to end an attempt, except those with options that a worker refuses, and whatever else crosses threads. */
const rows = [
  ...firstBy(
    wireFailures.filter(({ options }) => !options?.agent && !options?.tls),
    kindOf,
  ),
  ...[{ ca: untrusted.cert }, { ca: [Buffer.from(untrusted.cert)] }].map((tls) => ({
    what: `a private CA as ${typeof tls.ca}`,
    tls: untrusted,
    options: { tls },
    handshake: [accept(close(4001))],
  })),
  {
    what: 'a key from an async function',
    options: { apiKey: () => Promise.resolve('planted-key') },
    ticket: [refuse(403)],
  },
  { what: 'a function that returns no string', options: { apiKey: () => ({}) as string } },
  { what: 'a function that returns a symbol', options: { apiKey: () => Symbol('planted') as unknown as string } },
  {
    what: "a function that resolves with what can't be cloned",
    options: { apiKey: () => Promise.resolve({ call: () => undefined } as unknown as string) },
  },
] satisfies readonly Partial<Row>[];

// The delay is so long that no second attempt is observed.
const noHurry = { initialDelayMs: 5_000, maxDelayMs: 5_000, jitter: 'none' } as const;

// Removes fields that depend on a clock or on the machine.
const timeless = ({ endedAt: _, uptimeMs: __, ...fields }: Record<string, unknown>) => fields;
const comparable = (failure: TradeFeedError | undefined): unknown =>
  failure && {
    ...timeless(failure.toJSON()),
    isError: failure instanceof Error,
    kind: failure.constructor.name,
    cause: causeOf(failure.cause),
    previous: comparable(failure.previous),
  };
const causeOf = (cause: unknown): unknown =>
  cause instanceof Error
    ? { name: cause.name, message: cause.message, code: (cause as { code?: unknown }).code }
    : cause;
const eventOf = (event: FeedEvent): unknown => {
  if (event.type === 'frame')
    return { ...event, data: event.data.toString('latin1'), receivedAt: typeof event.receivedAt };
  if (event.type === 'disconnected' || event.type === 'stopped')
    return { type: event.type, failure: comparable(event.failure) };
  const facts: Record<string, unknown> = { ...event };
  for (const name of ['at', 'expiresAt']) Reflect.deleteProperty(facts, name);
  return facts;
};

// Only a worker sends watermarks.
const isNoWatermark = ({ type }: FeedEvent): boolean => type !== 'watermark';

const seen = async ({ options, ...script }: Partial<Row>, receiveIn: 'main' | 'worker') => {
  await using wire = await startWire(script);
  const { failure, goesOn, events } = await outcomeOf(optionsFor(wire, { ...options, receiveIn, backoff: noHurry }));
  const text = JSON.stringify(
    { failure: comparable(failure), goesOn, events: events.filter(isNoWatermark).map(eventOf) },
    null,
    1,
  );
  // Each wire has its own port, and a failure of a certificate says that it's the worker's.
  return text.replaceAll(/127\.0\.0\.1:\d+|, in the worker/g, (part) => (part.startsWith(',') ? '' : 'here'));
};

it.each(rows)('a feed in a worker emits the same as a feed on this thread: $what', async (row) => {
  const [here, there] = await Promise.all([seen(row, 'main'), seen(row, 'worker')]);
  expect(there).toBe(here);
});
