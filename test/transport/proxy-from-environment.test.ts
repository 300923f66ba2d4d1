import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { proxyFromEnvironment, tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { marketBatches$, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { type ConnectProxyOptions, startConnectProxy } from '../support/connect-proxy.js';
import { outcomeOf } from '../support/feed.js';

const host = 'feed.example';

let certificate: Certificate;
let service: TradeFeedService;
beforeAll(async () => {
  certificate = await certificateFor(host);
  service = await startTradeFeedService({
    tls: certificate,
    publicUrl: `https://${host}`,
    sources: { market: marketBatches$({ rate: 100 }) },
  });
});
afterAll(() => service.shutdown());

const portOf = (url: string): number => Number(new URL(url).port);

/** Starts a proxy that knows the service as `feed.example:443`. DNS does not know that name. */
const startProxy = (options: Partial<ConnectProxyOptions> = {}) =>
  startConnectProxy({ targets: { [`${host}:443`]: portOf(service.baseUrl) }, ...options });

const optionsThrough = async (HTTPS_PROXY: string, more: Record<string, string> = {}): Promise<TradeFeedOptions> => {
  const tls = { ca: certificate.cert };
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const proxy = await proxyFromEnvironment({ env: { HTTPS_PROXY, ...more }, tls });
  return { baseUrl: `https://${host}`, apiKey, tls, ...proxy };
};

describe('proxyFromEnvironment', () => {
  it('resolves with no options if there is no proxy', async () => {
    expect(await proxyFromEnvironment({ env: {} })).toStrictEqual({});
    expect(await proxyFromEnvironment({ env: { HTTPS_PROXY: 'http://p', NODE_USE_ENV_PROXY: '0' } })).toStrictEqual({});
  });

  it('rejects if the variable is not the address of an HTTP proxy', async () => {
    await expect(proxyFromEnvironment({ env: { HTTPS_PROXY: 'socks5://p' } })).rejects.toMatchObject({
      code: 'invalid-options',
    });
  });

  it('lets ticket request and handshake use the proxy, which sees neither key nor ticket', async () => {
    await using proxy = await startProxy();
    const options = await optionsThrough(proxy.url);
    expect((await firstValueFrom(tradeFeed$('market', options))).text()).toMatch(/^\{"batch"/);
    expect(proxy.requests.map(({ authority }) => authority)).toEqual([`${host}:443`, `${host}:443`]);
    expect(proxy.tunnels()).toBe(2);
    const [{ headers } = { headers: {} }] = proxy.requests;
    expect(Object.keys(headers).sort()).toEqual(['connection', 'host']);
  });

  it('sends the user name and the password of the proxy', async () => {
    await using proxy = await startProxy();
    const url = proxy.url.replace('//', '//planted-user:p%40ss@');
    await firstValueFrom(tradeFeed$('market', await optionsThrough(url)));
    expect(proxy.requests.map(({ headers }) => headers['proxy-authorization'])).toEqual(
      [1, 2].map(() => `Basic ${Buffer.from('planted-user:p@ss').toString('base64')}`),
    );
  });

  it('reports what the proxy answered, without its password', async () => {
    await using proxy = await startProxy({ status: 407 });
    const url = proxy.url.replace('//', '//user:planted-password@');
    const { failure } = await outcomeOf(await optionsThrough(url));
    expect(failure).toMatchObject({
      code: 'ticket-endpoint-unreachable',
      verdict: 'backoff',
      detail: `the proxy 127.0.0.1:${portOf(proxy.url)} refused the connection to ${host}:443 (HTTP 407)`,
    });
    expect(failure.message).not.toContain('planted');
  });

  it('reports a proxy that cannot be reached', async () => {
    const { failure } = await outcomeOf(await optionsThrough('http://127.0.0.1:1'));
    expect(failure).toMatchObject({
      code: 'ticket-endpoint-unreachable',
      detail: expect.stringMatching(/^the proxy 127\.0\.0\.1:1 cannot be used: connect ECONNREFUSED/),
    });
  });

  it('ends the attempt at the deadline if the proxy is silent', async () => {
    await using proxy = await startProxy({ isSilent: true });
    const options = { ...(await optionsThrough(proxy.url)), ticketTimeoutMs: 50 };
    const { failure } = await outcomeOf(options);
    expect(failure).toMatchObject({ code: 'ticket-endpoint-unreachable', detail: 'no answer in 50 ms' });
  });

  it('checks the certificate of the service behind the proxy', async () => {
    await using proxy = await startProxy();
    const options = await optionsThrough(proxy.url);
    const { failure } = await outcomeOf({
      ...options,
      ...(await proxyFromEnvironment({ env: { HTTPS_PROXY: proxy.url } })),
    });
    expect(failure).toMatchObject({ code: 'untrusted-certificate', verdict: 'stop' });
    await using other = await startConnectProxy({ targets: { 'other.example:443': portOf(service.baseUrl) } });
    const wrongName = { ...(await optionsThrough(other.url)), baseUrl: 'https://other.example' };
    expect((await outcomeOf(wrongName)).failure).toMatchObject({ code: 'untrusted-certificate' });
  });

  it('does not report the certificate of an https: proxy as that of the service', async () => {
    await using proxy = await startProxy({ tls: certificate });
    const { failure } = await outcomeOf(await optionsThrough(proxy.url));
    expect(failure).toMatchObject({
      code: 'ticket-endpoint-unreachable',
      detail: expect.stringMatching(/^the proxy .* cannot be used: self-signed certificate/),
    });
  });

  it('connects directly to a host of NO_PROXY', async () => {
    await using proxy = await startProxy();
    const options = await optionsThrough(proxy.url, { NO_PROXY: host });
    // DNS does not know the host, or does not answer.
    const { failure } = await outcomeOf({ ...options, ticketTimeoutMs: 1_000 });
    expect(failure).toMatchObject({ code: 'ticket-endpoint-unreachable' });
    expect(proxy.requests).toEqual([]);
  });

  it('connects directly to a service on this machine, with and without TLS', async () => {
    await using proxy = await startProxy();
    const own = { sources: { market: marketBatches$({ rate: 100 }) } };
    await using plain = await startTradeFeedService(own);
    const local = await certificateFor();
    await using secure = await startTradeFeedService({ ...own, tls: local });
    for (const { baseUrl, createAccount } of [plain, secure]) {
      const tls = { ca: local.cert };
      const options = await proxyFromEnvironment({ env: { HTTPS_PROXY: proxy.url }, tls });
      const apiKey = createAccount({ plan: 'developer' }).createApiKey();
      const frame = await firstValueFrom(tradeFeed$('market', { baseUrl, apiKey, tls, ...options }));
      expect(frame.text()).toMatch(/^\{"batch"/);
    }
    expect(proxy.requests).toEqual([]);
  });
});
