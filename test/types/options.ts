// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
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
  warnings: false,
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

// @ts-expect-error -- a key is a string
export const numberKey: TradeFeedOptions = { apiKey: 5 };
// @ts-expect-error -- also if a function returns it
export const numberKeyFunction: TradeFeedOptions = { apiKey: () => 5 };
// @ts-expect-error -- durations are numbers in ms
export const textDuration: TradeFeedOptions = { idleTimeoutMs: '30s' };
// @ts-expect-error -- unknown option
export const unknownOption: TradeFeedOptions = { timeoutMs: 5 };
// @ts-expect-error -- unknown option of the policy
export const unknownPolicy: TradeFeedOptions = { backoff: { retries: 5 } };
// @ts-expect-error -- one of three strings
export const unknownJitter: TradeFeedOptions = { backoff: { jitter: 'some' } };
// @ts-expect-error -- one of four strings
export const unknownVerdict: TradeFeedOptions = { classify: () => 'retry' };

declare const options: TradeFeedOptions;
declare const policy: BackoffPolicy;

// @ts-expect-error -- options are readonly
options.apiKey = 'other';
// @ts-expect-error -- also `backoff`
options.backoff = {};
// @ts-expect-error -- also the fields of the policy
policy.factor = 3;
