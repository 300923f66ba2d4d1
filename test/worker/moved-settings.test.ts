import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:https';
import { inspect } from 'node:util';
import { VirtualTimeScheduler } from 'rxjs';
import { Client } from 'undici';
import { tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { resolveTicketOptions, type Settings } from '../../src/options.js';
import { Secret } from '../../src/protocol/secret.js';
import type { Asking } from '../../src/worker/inside/asking.js';
import { restoredSettings } from '../../src/worker/inside/restored-settings.js';
import { checkMovable, movedSettings } from '../../src/worker/moved-settings.js';

const given: TradeFeedOptions = {
  baseUrl: 'https://feed.example.com',
  apiKey: 'planted-key',
  receiveIn: 'worker',
};
const asking: Asking = {
  apiKey: () => Promise.resolve('asked'),
  classify: () => 'stop',
  random: () => 0.5,
  checkServerIdentity: () => undefined,
  hear: () => undefined,
};
/** What arrives in the worker. */
const across = (options: TradeFeedOptions): Settings =>
  restoredSettings(structuredClone(movedSettings(resolveTicketOptions(options))), asking);

describe('settings on their way into a worker', () => {
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
      expect(() => feed$('market', { ...given, ...options })).toThrow(wanted);
    expect(() => tradeFeed$('market', { ...given, ...options, receiveIn: 'main' })).not.toThrow();
    release();
  });

  it.each<TradeFeedOptions>([{ tls: { checkServerIdentity: () => undefined } }, { backoff: { random: () => 0 } }])(
    'are refused if the worker would wait for this thread while it should read: standby with %p',
    (options) => {
      expect(() => tradeFeed$('market', { ...given, ...options, standby: true })).toThrow('`standby` must be left out');
      expect(() => tradeFeed$('market', { ...given, ...options })).not.toThrow();
      expect(() => tradeFeed$('market', { ...given, ...options, standby: true, receiveIn: 'main' })).not.toThrow();
      expect(() => tradeFeed$('market', { ...given, standby: true })).not.toThrow();
    },
  );

  it('has a bound that goes with a worker alone', () => {
    expect(() => tradeFeed$('market', { ...given, receiveIn: 'main', receiveBufferBytes: 1 })).toThrow(
      "`receiveBufferBytes` must be left out without `receiveIn: 'worker'`",
    );
    expect(movedSettings(resolveTicketOptions(given)).receiveBufferBytes).toBe(268_435_456);
    expect(movedSettings(resolveTicketOptions({ ...given, receiveBufferBytes: 5 })).receiveBufferBytes).toBe(5);
  });

  it('arrive as they were, the key wrapped, and no function is asked for that was not given', () => {
    const settings = across({
      ...given,
      ticketTimeoutMs: 5,
      standby: true,
      backoff: { maxAttempts: Infinity, factor: 3 },
    });
    expect(settings).toMatchObject({
      baseUrl: given.baseUrl,
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

  it('arrive with functions that ask, and Buffers in the options of TLS', () => {
    const settings = across({
      ...given,
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
    expect(settings).toMatchObject({ apiKey: asking.apiKey, classify: asking.classify });
    expect(settings.backoff.random).toBe(asking.random);
    expect(settings.tls).toMatchObject({
      passphrase: 'none',
      crl: [],
      ciphers: 'HIGH',
      checkServerIdentity: asking.checkServerIdentity,
    });
    expect(Buffer.isBuffer((settings.tls as Record<string, unknown>)['ticketKeys'])).toBe(true);
  });

  it('leave behind what belongs to this thread alone', () => {
    const settings = { ...resolveTicketOptions(given), [Symbol('of this thread')]: () => undefined };
    expect(() => structuredClone(movedSettings(settings))).not.toThrow();
    expect(checkMovable(settings)).toBe(settings);
  });
});
