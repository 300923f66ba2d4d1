import { afterAll, describe, expect, it } from '@jest/globals';
import { Agent } from 'node:https';
import { inspect } from 'node:util';
import { VirtualTimeScheduler } from 'rxjs';
import { Client } from 'undici';
import { createTradeFeedError, tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { resolveTicketOptions, type Settings } from '../../src/feed/options.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { Secret } from '../../src/protocol/secret.js';
import { fromCloneable, keepThrown, standIn, type Thrown, toCloneable } from '../../src/worker/errors.js';
import { workerEnvironment } from '../../src/worker/feed-in-worker.js';
import {
  checkReceiveIn,
  cloneableSettings,
  networkDefaults,
  restoreSettings,
  setNetworkDefaults,
} from '../../src/worker/settings.js';

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
  });

  it('arrive with a function that requests the key, and with Buffers in the TLS options', () => {
    const tls = { passphrase: 'none', crl: [], ciphers: 'HIGH', ticketKeys: Buffer.alloc(48) };
    const settings = across({ ...valid, apiKey: () => 'mine', tls });
    expect(settings.apiKey).toBe(askForKey);
    expect(settings.tls).toMatchObject({ passphrase: 'none', crl: [], ciphers: 'HIGH' });
    expect(Buffer.isBuffer((settings.tls as Record<string, unknown>)['ticketKeys'])).toBe(true);
  });

  it('contain no properties named by symbols', () => {
    const settings = { ...resolveTicketOptions(valid), [Symbol('of this thread')]: () => undefined };
    expect(() => structuredClone(cloneableSettings(settings))).not.toThrow();
    expect(checkReceiveIn(settings)).toBe(settings);
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
    const others = { order: 'ipv4first', autoSelectFamily, attemptTimeoutMs: 1_234 } as const;
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
    expect(returned.stack).toBe(failure.stack);
    expect(returned.cause).toEqual(cause);
    expect(returned.cause).toMatchObject({ code: 'EHOSTUNREACH', stack: cause.stack });
    expect(returned.previous?.toJSON()).toEqual(previous.toJSON());
  });

  it.each([
    ['an error of another class', new RangeError('too far'), { name: 'RangeError', message: 'too far' }],
    ['a string', 'a word', { message: 'a word' }],
    ['nothing', undefined, { message: 'undefined' }],
    ['a value that cannot be cloned', { message: 'm', code: 1, run: () => 1 }, { message: 'm' }],
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
