// Compile-only: `tsc --noEmit` is the test. What must not compile is marked, and an unused mark fails.
import { type BackoffPolicy, Secret, type TradeFeedError, type TradeFeedOptions, type Verdict } from 'rx-trade-feed';
import { Agent } from 'node:https';
import { VirtualTimeScheduler } from 'rxjs';
import { Agent as UndiciAgent } from 'undici';

export const all = {
  baseUrl: 'https://feed.example.com',
  apiKey: 'key',
  ticketTimeoutMs: 1,
  handshakeTimeoutMs: 1,
  idleTimeoutMs: 0,
  maxFrameBytes: 1,
  backoff: {
    initialDelayMs: 1,
    maxDelayMs: 1,
    factor: 1,
    jitter: 'equal',
    stableAfterMs: 1,
    maxAttempts: Infinity,
    random: () => 0.5,
    scheduler: new VirtualTimeScheduler(),
  },
  classify: (failure, verdict) => {
    failure satisfies TradeFeedError;
    verdict satisfies Verdict;
    return failure.code === 'client-too-slow' ? 'stop' : verdict;
  },
  tls: { ca: 'pem', servername: 'x', rejectUnauthorized: true, checkServerIdentity: () => undefined },
  standby: true,
  receiveIn: 'main',
  receiveBufferBytes: 1_000_000,
  dispatcher: new UndiciAgent(),
  agent: new Agent(),
} satisfies Required<TradeFeedOptions>;

export const keys: readonly TradeFeedOptions[] = [
  {},
  { apiKey: undefined, baseUrl: process.env['SOME_URL'] },
  { apiKey: new Secret('key') },
  { apiKey: () => 'key' },
  { apiKey: () => Promise.resolve('key') },
  { apiKey: async () => (await Promise.resolve({ key: 'key' })).key },
  { backoff: { maxAttempts: 3 } },
  { backoff: undefined },
  { backoff: { factor: undefined, jitter: undefined } },
];

// @ts-expect-error -- a key is a text
export const numberKey: TradeFeedOptions = { apiKey: 5 };
// @ts-expect-error -- and so is what a function gives
export const numberKeyFunction: TradeFeedOptions = { apiKey: () => 5 };
// @ts-expect-error -- durations are numbers of ms
export const textDuration: TradeFeedOptions = { idleTimeoutMs: '30s' };
// @ts-expect-error -- there is no such option
export const unknownOption: TradeFeedOptions = { timeoutMs: 5 };
// @ts-expect-error -- nor this one of the policy
export const unknownPolicy: TradeFeedOptions = { backoff: { retries: 5 } };
// @ts-expect-error -- one of three words
export const unknownJitter: TradeFeedOptions = { backoff: { jitter: 'some' } };
// @ts-expect-error -- one of four words
export const unknownVerdict: TradeFeedOptions = { classify: () => 'retry' };

declare const given: TradeFeedOptions;
declare const policy: BackoffPolicy;

// @ts-expect-error -- options are read, never written
given.apiKey = 'other';
// @ts-expect-error -- none of them
given.backoff = {};
// @ts-expect-error -- nor those of the policy
policy.factor = 3;
