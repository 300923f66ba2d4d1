import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import { isObservable } from 'rxjs';
import { type Feed, TradeFeedError, type TradeFeedOptions } from '../src/index.js';
import { tradeFeed$, tradeFeedEvents$ } from '../src/trade-feed.js';

const names = ['TRADE_FEED_BASE_URL', 'TRADE_FEED_API_KEY'] as const;
const environment = names.map((name) => [name, process.env[name]] as const);
beforeEach(() => {
  for (const name of names) Reflect.deleteProperty(process.env, name);
});
afterEach(() => {
  for (const [name, value] of environment) {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
});

const valid: TradeFeedOptions = { baseUrl: 'https://feed.example.com', apiKey: 'planted-key' };

const refusalOf = (call: () => unknown): TradeFeedError => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TradeFeedError);
    return error as TradeFeedError;
  }
  throw new Error('no exception');
};

describe.each([
  ['tradeFeed$', tradeFeed$],
  ['tradeFeedEvents$', tradeFeedEvents$],
] as const)('%s', (_name, feed$) => {
  it.each([[undefined], ['market'], ['raw']] as [Feed | undefined][])('returns an Observable for %p', (feed) => {
    expect(isObservable(feed$(feed, valid))).toBe(true);
  });

  it('validates once, and not again for a subscription', () => {
    const passphrase = jest.fn(() => 'none');
    const tls = Object.defineProperty({}, 'passphrase', { get: passphrase, enumerable: true });
    const ready$ = feed$('market', { ...valid, tls, apiKey: () => new Promise<string>(() => undefined) });
    const { length } = passphrase.mock.calls;
    ready$.subscribe().unsubscribe();
    expect(length).toBeGreaterThan(0);
    expect(passphrase).toHaveBeenCalledTimes(length);
  });

  it.each(['', 'x', 'Market', 'planted-key', 'toString', null, 5, {}, ['raw']])(
    'refuses the feed %p from the call itself',
    (feed) => {
      const error = refusalOf(() => feed$(feed as Feed, valid));
      const got = typeof feed === 'number' ? `, got ${feed}` : '';
      expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop' });
      expect(error.message).toContain(`\`feed\` must be 'market' or 'raw'${got})`);
      expect(inspect(error)).not.toContain('planted');
    },
  );

  it.each<[string, TradeFeedOptions | undefined, string]>([
    ['no options', undefined, '`baseUrl` must be set, or be in TRADE_FEED_BASE_URL'],
    ['no key', { baseUrl: 'https://feed.example.com' }, '`apiKey` must be set, or be in TRADE_FEED_API_KEY'],
    [
      'http: to another machine',
      { ...valid, baseUrl: 'http://feed.example.com' },
      '`baseUrl` must be an https: address',
    ],
    [
      'a negative delay',
      { ...valid, backoff: { initialDelayMs: -1 } },
      '`backoff.initialDelayMs` must be a number of ms, 0 or more, got -1',
    ],
    [
      'a string for a time',
      { ...valid, idleTimeoutMs: 'planted-key' as never },
      '`idleTimeoutMs` must be a number of ms, 0 or more)',
    ],
    ['an unknown option', { ...valid, timeout: 5 } as TradeFeedOptions, '`timeout` must be left out'],
  ])('refuses %s from the call itself', (_what, options, message) => {
    const error = refusalOf(() => feed$('market', options));
    expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop', stage: 'ticket' });
    expect(error.message).toContain(message);
    expect(inspect(error, { showHidden: true, depth: null })).not.toContain('planted');
  });

  it('reads missing options from the environment', () => {
    process.env['TRADE_FEED_BASE_URL'] = 'https://feed.example.com';
    process.env['TRADE_FEED_API_KEY'] = 'planted-key';
    expect(isObservable(feed$())).toBe(true);
    expect(inspect(feed$(), { showHidden: true, depth: null })).not.toContain('planted-key');
  });

  it('does not call apiKey before the subscription', () => {
    const apiKey = () => {
      throw new Error('called too early');
    };
    expect(isObservable(feed$('raw', { ...valid, apiKey }))).toBe(true);
  });
});
