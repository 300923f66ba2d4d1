import { describe, expect, it } from '@jest/globals';
import { proxyFor, proxyOf } from '../../src/transport/proxy-for.js';

const HTTPS_PROXY = 'http://proxy.example:3128';
const service = new URL('https://feed.example/v1');

describe('proxyFor', () => {
  const through: readonly (readonly [env: Record<string, string>, proxy: string])[] = [
    [{ HTTPS_PROXY }, 'http://proxy.example:3128/'],
    [{ https_proxy: 'http://lower.example', HTTPS_PROXY }, 'http://lower.example/'],
    [{ HTTPS_PROXY: 'https://proxy.example' }, 'https://proxy.example/'],
    [{ HTTPS_PROXY: ' proxy.example:3128 ' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY: '10.0.0.1:8080' }, 'http://10.0.0.1:8080/'],
    [{ HTTPS_PROXY, NODE_USE_ENV_PROXY: '1' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'eed.example, example.feed' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'feed.example:8443' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: '*x.example' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'feed.example', no_proxy: 'other.example' }, 'http://proxy.example:3128/'],
  ];
  it.each(through)('with %j is %s', (env, proxy) => {
    expect(proxyFor(service, env)?.href).toBe(proxy);
    expect(proxyFor(new URL('wss://feed.example/ws'), env)?.href).toBe(proxy);
  });

  const directly: readonly Record<string, string>[] = [
    {},
    { https_proxy: '', HTTPS_PROXY },
    { HTTP_PROXY: HTTPS_PROXY, ALL_PROXY: HTTPS_PROXY },
    { HTTPS_PROXY, NODE_USE_ENV_PROXY: '0' },
    { HTTPS_PROXY, NO_PROXY: '*' },
    { HTTPS_PROXY, NO_PROXY: 'feed.example' },
    { HTTPS_PROXY, NO_PROXY: 'feed.example:443' },
    { HTTPS_PROXY, NO_PROXY: 'example' },
    { HTTPS_PROXY, NO_PROXY: '.example' },
    { HTTPS_PROXY, NO_PROXY: '*.example:443' },
    { HTTPS_PROXY, no_proxy: 'a.example,feed.example' },
    { HTTPS_PROXY, NO_PROXY: 'a.example feed.example' },
  ];
  it.each(directly)('with %j is a direct connection', (env) => {
    expect(proxyFor(service, env)).toBeUndefined();
  });

  it('is a direct connection to this machine, with and without TLS', () => {
    for (const url of [
      'https://localhost',
      'wss://127.0.0.1:8443/ws',
      'https://[::1]',
      'http://127.0.0.1',
      'ws://[::1]',
    ])
      expect([url, proxyFor(new URL(url), { HTTPS_PROXY })]).toEqual([url, undefined]);
  });

  it.each(['2001:db8::1', '[2001:db8::1]', '[2001:db8::1]:443'])(
    'recognizes the IPv6 address %s in NO_PROXY',
    (NO_PROXY) => {
      expect(proxyFor(new URL('https://[2001:db8::1]'), { HTTPS_PROXY, NO_PROXY })).toBeUndefined();
      expect(proxyFor(new URL('https://[2001:db8::2]'), { HTTPS_PROXY, NO_PROXY })?.href).toBe(`${HTTPS_PROXY}/`);
    },
  );
});

describe('proxyOf', () => {
  it.each(['socks5://proxy.example:1080', 'http://', 'http://user:planted-password@', 'ftp://proxy.example'])(
    'refuses %s without repeating it',
    (address) => {
      const read = (): unknown => proxyOf({ HTTPS_PROXY: address });
      expect(read).toThrow(expect.objectContaining({ code: 'invalid-options', option: 'HTTPS_PROXY' }));
      expect(read).toThrow('must be the http: or https: address of a proxy');
      expect(read).not.toThrow(/planted|socks5|ftp/);
    },
  );
});
