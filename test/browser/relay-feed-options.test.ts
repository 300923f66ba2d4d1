import { afterEach, describe, expect, it } from '@jest/globals';
import { asyncScheduler } from 'rxjs';
import { relayFeed$, type RelayFeedOptions } from '../../src/browser/index.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { defaultBackoff } from '../../src/reconnect/policy.js';

const url = 'http://localhost/feed';
const page = globalThis as { location?: { href: string } | undefined };
afterEach(() => {
  delete page.location;
});

describe('resolveRelayFeed', () => {
  it('adds the defaults', () => {
    expect(resolveRelayFeed(url)).toEqual({
      ...{ url, headers: {}, credentials: 'same-origin', connectTimeoutMs: 10_000, idleTimeoutMs: 45_000 },
      maxFeedStops: 5,
      ...{ backoff: defaultBackoff, scheduler: asyncScheduler },
    });
    expect(resolveRelayFeed(url, { headers: undefined, resumeIn: undefined })).toEqual(resolveRelayFeed(url));
  });

  it.each([1, 2, Infinity])('accepts %p as maxFeedStops', (maxFeedStops) => {
    expect(resolveRelayFeed(url, { maxFeedStops })).toMatchObject({ maxFeedStops });
  });

  it('accepts an absolute address, or one relative to the page', () => {
    expect(resolveRelayFeed(new URL('https://a.example/b?c=d')).url).toBe('https://a.example/b?c=d');
    page.location = { href: 'https://app.example.com/some/page?x#y' };
    expect(resolveRelayFeed('/feed').url).toBe('https://app.example.com/feed');
    expect(resolveRelayFeed('feed').url).toBe('https://app.example.com/some/feed');
    expect(resolveRelayFeed('//b.example/feed').url).toBe('https://b.example/feed');
    expect(resolveRelayFeed(url).url).toBe(url);
  });
});

describe('relayFeed$', () => {
  it.each<[string, string]>([
    ['a relative address without a page', '/feed'],
    ['no address', ''],
    ['another scheme', 'ws://localhost/feed'],
    ['a script', 'javascript:alert(1)'],
    ['data', 'data:text/event-stream,x'],
    ['no host', 'http://'],
    ['a blank in the host', 'http://a b/'],
    ['a user', 'http://user@localhost/feed'],
    ['a password', 'http://:secret-5@localhost/feed'],
  ])('refuses %s as its address, and does not repeat it', (_what, address) => {
    const make = () => relayFeed$(address);
    expect(make).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining('`url`') }),
    );
    expect(make).not.toThrow('secret-5');
  });

  it.each<[keyof RelayFeedOptions | 'header' | 'backoff.factor', object]>([
    ...[1, 'Bearer secret-5', null, { authorization: 5 }, { authorization: undefined }].map(
      (headers): ['headers', object] => ['headers', { headers }],
    ),
    ...[{ 'a b': 'secret-5' }, { '': 'secret-5' }, { a: 'secret-5\nb' }, { a: 'secret-5 \u0100' }].map(
      (headers): ['headers', object] => ['headers', { headers }],
    ),
    ['credentials', { credentials: 'always' }],
    ...[0, -1, NaN, '5'].map((ms): ['connectTimeoutMs', object] => ['connectTimeoutMs', { connectTimeoutMs: ms }]),
    ...[0, -1, NaN, '5'].map((ms): ['idleTimeoutMs', object] => ['idleTimeoutMs', { idleTimeoutMs: ms }]),
    ['backoff', { backoff: 5 }],
    ['backoff', { backoff: null }],
    ['backoff.factor', { backoff: { factor: 0 } }],
    ...[{}, null, 'sessionStorage', { getItem: () => null }].map((resumeIn): ['resumeIn', object] => [
      'resumeIn',
      { resumeIn },
    ]),
    ...[0, -1, 1.5, NaN, '5', null].map((n): ['maxFeedStops', object] => ['maxFeedStops', { maxFeedStops: n }]),
    ['classify', { classify: 'stop' }],
    ...['all', true, null].map((tabs): ['tabs', object] => ['tabs', { tabs }]),
    ['scheduler', { scheduler: {} }],
    ['header', { header: {} }],
  ])('refuses %s as %j at once, and names the option', (name, options) => {
    const make = () => relayFeed$(url, options);
    expect(make).toThrow(TradeFeedError);
    expect(make).toThrow(`\`${name}\``);
    expect(make).not.toThrow('secret-5');
  });
});
