import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:https';
import { inspect } from 'node:util';
import { VirtualTimeScheduler } from 'rxjs';
import { Client } from 'undici';
import { tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { resolveTicketOptions, type Settings } from '../../src/options.js';
import { Secret } from '../../src/protocol/secret.js';
import { checkReceiveIn, cloneableSettings } from '../../src/worker/cloneable-settings.js';
import { restoreSettings } from '../../src/worker/inside/restore-settings.js';
import type { UserFunctions } from '../../src/worker/inside/user-functions.js';

const valid: TradeFeedOptions = {
  baseUrl: 'https://feed.example.com',
  apiKey: 'planted-key',
  receiveIn: 'worker',
};
const functions: UserFunctions = {
  apiKey: () => Promise.resolve('key'),
  classify: () => 'stop',
  random: () => 0.5,
  checkServerIdentity: () => undefined,
  receiveKey: () => undefined,
};
/** Returns the settings that arrive in the worker. */
const across = (options: TradeFeedOptions): Settings =>
  restoreSettings(structuredClone(cloneableSettings(resolveTicketOptions(options))), functions);

describe('settings for a worker', () => {
  it.each<[string, TradeFeedOptions, () => void]>([
    ...(() => {
      const client = new Client('http://127.0.0.1:1');
      const agent = new Agent();
      return [
        ['dispatcher', { dispatcher: client }, () => void client.destroy()],
        ['agent', { agent }, () => agent.destroy()],
      ] as [string, TradeFeedOptions, () => void][];
    })(),
    ['backoff.scheduler', { backoff: { scheduler: new VirtualTimeScheduler() } }, () => undefined],
    ['tls.ALPNCallback', { tls: { ALPNCallback: () => undefined } }, () => undefined],
  ])('are refused from the call itself if they are bound to this thread: %s', (name, options, release) => {
    const wanted = `\`${name}\` must be left out with \`receiveIn: 'worker'\``;
    for (const feed$ of [tradeFeed$, tradeFeedEvents$])
      expect(() => feed$('market', { ...valid, ...options })).toThrow(wanted);
    expect(() => tradeFeed$('market', { ...valid, ...options, receiveIn: 'main' })).not.toThrow();
    release();
  });

  it.each<TradeFeedOptions>([{ tls: { checkServerIdentity: () => undefined } }, { backoff: { random: () => 0 } }])(
    'are refused if the worker would wait for this thread while it should read: standby with %p',
    (options) => {
      expect(() => tradeFeed$('market', { ...valid, ...options, standby: true })).toThrow('`standby` must be left out');
      expect(() => tradeFeed$('market', { ...valid, ...options })).not.toThrow();
      expect(() => tradeFeed$('market', { ...valid, ...options, standby: true, receiveIn: 'main' })).not.toThrow();
      expect(() => tradeFeed$('market', { ...valid, standby: true })).not.toThrow();
    },
  );

  it('accepts receiveBufferBytes only with a worker', () => {
    expect(() => tradeFeed$('market', { ...valid, receiveIn: 'main', receiveBufferBytes: 1 })).toThrow(
      "`receiveBufferBytes` must be left out without `receiveIn: 'worker'`",
    );
    expect(cloneableSettings(resolveTicketOptions(valid)).receiveBufferBytes).toBe(268_435_456);
    expect(cloneableSettings(resolveTicketOptions({ ...valid, receiveBufferBytes: 5 })).receiveBufferBytes).toBe(5);
  });

  it('arrive unchanged, with the key as a Secret and without functions that the user did not pass', () => {
    const settings = across({
      ...valid,
      ticketTimeoutMs: 5,
      standby: true,
      backoff: { maxAttempts: Infinity, factor: 3 },
    });
    expect(settings).toMatchObject({
      baseUrl: valid.baseUrl,
      ticketTimeoutMs: 5,
      standby: true,
      idleTimeoutMs: 30_000,
    });
    expect(settings.backoff).toMatchObject({ maxAttempts: Infinity, factor: 3, random: Math.random });
    expect((settings.apiKey as Secret).reveal()).toBe('planted-key');
    expect(settings).not.toHaveProperty('classify');
    expect(settings).not.toHaveProperty('receiveIn');
    expect(inspect(settings, { depth: null, showHidden: true })).not.toContain('planted');
  });

  it('arrive with functions of the user, and with Buffers in the TLS options', () => {
    const settings = across({
      ...valid,
      apiKey: () => 'mine',
      classify: () => 'renew',
      backoff: { random: () => 0 },
      tls: {
        passphrase: 'none',
        crl: [],
        checkServerIdentity: () => new Error('mine'),
        ciphers: 'HIGH',
        ticketKeys: Buffer.alloc(48),
      },
    });
    expect(settings).toMatchObject({ apiKey: functions.apiKey, classify: functions.classify });
    expect(settings.backoff.random).toBe(functions.random);
    expect(settings.tls).toMatchObject({
      passphrase: 'none',
      crl: [],
      ciphers: 'HIGH',
      checkServerIdentity: functions.checkServerIdentity,
    });
    expect(Buffer.isBuffer((settings.tls as Record<string, unknown>)['ticketKeys'])).toBe(true);
  });

  it('do not contain properties with a symbol as their name', () => {
    const settings = { ...resolveTicketOptions(valid), [Symbol('of this thread')]: () => undefined };
    expect(() => structuredClone(cloneableSettings(settings))).not.toThrow();
    expect(checkReceiveIn(settings)).toBe(settings);
  });
});
