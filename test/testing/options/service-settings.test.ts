import { describe, expect, it } from '@jest/globals';
import { NEVER } from 'rxjs';
import { serviceDefaults, startTradeFeedService } from 'rx-trade-feed/testing';
import { serviceSettings } from '../../../src/testing/options/service-settings.js';
import type { TradeFeedServiceOptions } from '../../../src/testing/options/service-options.js';

const refused = (options: unknown): string => {
  try {
    serviceSettings(options as TradeFeedServiceOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as TypeError).message;
  }
  throw new Error('The options were not refused.');
};

describe('the options of the service', () => {
  it('have defaults: those of the contract, and the documented ones', () => {
    expect(serviceSettings()).toEqual(serviceDefaults);
    expect(serviceDefaults).toMatchObject({
      port: 0,
      tls: undefined,
      sources: {},
      limits: {
        ticketLifetimeMs: 60_000,
        windowMs: 60_000,
        ticketsPerWindow: 60,
        capacity: Infinity,
        backlogBytes: 1_048_576,
        freeDelayMs: 500,
        requestBytes: 16_384,
        requestTimeoutMs: 10_000,
        closeTimeoutMs: 10_000,
        shutdownTimeoutMs: 1_000,
      },
      subprotocols: { market: 'mmp.trade-batch.v1', raw: 'mmp.pending-transaction.v1' },
    });
  });

  it('replace the defaults one by one; undefined means the default; the object is not changed', () => {
    const options = Object.freeze({
      port: undefined,
      tls: undefined,
      sources: Object.freeze({ raw: NEVER }),
      limits: Object.freeze({ capacity: 3, backlogBytes: undefined }),
      subprotocols: Object.freeze({ raw: 'mine.v1', market: undefined }),
    });
    expect(serviceSettings(options)).toEqual({
      ...serviceDefaults,
      sources: { raw: NEVER },
      limits: { ...serviceDefaults.limits, capacity: 3 },
      subprotocols: { market: 'mmp.trade-batch.v1', raw: 'mine.v1' },
    });
  });

  const ms = 'must be a number of ms from 0 to 2147483647';
  const positive = 'must be a number of ms from 1 to 2147483647';
  const whole = 'must be a whole number from 0, or Infinity';
  it.each<[unknown, string]>([
    [null, '`options` must be an object of options; got null.'],
    [[], '`options` must be an object of options; got object.'],
    [
      { prot: 1 },
      '`prot` is not an option; allowed are port, tls, publicUrl, sources, limits, subprotocols, errorBody, scheduler.',
    ],
    [{ port: -1 }, '`port` must be a whole number from 0 to 65535; got -1.'],
    [{ port: 65_536 }, '`port` must be a whole number from 0 to 65535; got 65536.'],
    [{ port: '80' }, '`port` must be a whole number from 0 to 65535; got string.'],
    [{ tls: 'secret pem' }, '`tls` must be an object of options; got string.'],
    [{ tls: { cert: 'x' } }, '`tls.key` must be a PEM text or a Buffer; got undefined.'],
    [{ tls: { key: 'x' } }, '`tls.cert` must be a PEM text or a Buffer; got undefined.'],
    [{ tls: { key: 'x', cert: 'x', ca: 'x' } }, '`tls.ca` is not an option; allowed are key, cert.'],
    [
      { publicUrl: 1 },
      '`publicUrl` must be an origin, such as "https://feed.example"; http: only for a loopback host; got 1.',
    ],
    [{ sources: { market: [] } }, '`sources.market` must be an Observable of strings or bytes; got object.'],
    [{ sources: { candles: NEVER } }, '`sources.candles` is not an option; allowed are market, raw.'],
    [{ limits: 1 }, '`limits` must be an object of options; got 1.'],
    [{ limits: { ticketLifetimeMs: -1 } }, `\`limits.ticketLifetimeMs\` ${ms}; got -1.`],
    [{ limits: { windowMs: 0 } }, `\`limits.windowMs\` ${positive}; got 0.`],
    [{ limits: { ticketsPerWindow: 1.5 } }, `\`limits.ticketsPerWindow\` ${whole}; got 1.5.`],
    [{ limits: { capacity: -1 } }, `\`limits.capacity\` ${whole}; got -1.`],
    [{ limits: { backlogBytes: NaN } }, `\`limits.backlogBytes\` ${whole}; got NaN.`],
    [{ limits: { freeDelayMs: 2 ** 31 } }, `\`limits.freeDelayMs\` ${ms}; got 2147483648.`],
    [{ limits: { requestBytes: '1' } }, `\`limits.requestBytes\` ${whole}; got string.`],
    [{ limits: { requestTimeoutMs: Infinity } }, `\`limits.requestTimeoutMs\` ${positive}; got Infinity.`],
    [{ limits: { closeTimeoutMs: NaN } }, `\`limits.closeTimeoutMs\` ${ms}; got NaN.`],
    [{ limits: { shutdownTimeoutMs: null } }, `\`limits.shutdownTimeoutMs\` ${ms}; got null.`],
    [
      { subprotocols: { raw: 'two words' } },
      '`subprotocols.raw` must be a token of RFC 9110, such as "mmp.trade-batch.v1"; got string.',
    ],
    [
      { subprotocols: { market: 1 } },
      '`subprotocols.market` must be a token of RFC 9110, such as "mmp.trade-batch.v1"; got 1.',
    ],
    [{ errorBody: {} }, '`errorBody` must be a function; got object.'],
    [{ scheduler: {} }, '`scheduler` must be an RxJS SchedulerLike; got object.'],
    [{ scheduler: null }, '`scheduler` must be an RxJS SchedulerLike; got null.'],
  ])('%j is refused', (options, message) => {
    expect(refused(options)).toBe(message);
  });

  it.each([
    'feed.example',
    'wss://feed.example',
    'http://feed.example',
    'https://feed.example/path',
    'https://feed.example?query',
    'https://feed.example#part',
    'https://user@feed.example',
    ' https://feed.example',
    'https://feed.example:99999',
    'https://',
    '',
  ])('refuse %j as publicUrl', (publicUrl) => {
    expect(refused({ publicUrl })).toMatch(/^`publicUrl` must be an origin.*; got string\.$/);
  });

  it.each([
    'https://feed.example',
    'https://feed.example/',
    'HTTPS://FEED.example:444',
    'http://127.0.0.1:80',
    'http://localhost',
    'https://[::1]:8443',
  ])('accept %j as publicUrl', (publicUrl) => {
    expect(serviceSettings({ publicUrl }).publicUrl).toBe(publicUrl);
  });

  it('are all checked', () => {
    for (const limit of Object.keys(serviceDefaults.limits)) {
      expect(refused({ limits: { [limit]: 'x' } })).toContain(`\`limits.${limit}\``);
    }
  });

  it('make the start reject if they are invalid', async () => {
    await expect(startTradeFeedService({ port: -1 })).rejects.toThrow('`port` must be');
  });
});
