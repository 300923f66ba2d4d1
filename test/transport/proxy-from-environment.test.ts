import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { proxyFromEnvironment, tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { marketBatches$, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { proxyFor, proxyOf } from '../../src/transport/proxy-for.js';
import { openTunnel } from '../../src/transport/proxy-from-environment.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { type ConnectProxyOptions, startConnectProxy } from '../support/connect-proxy.js';
import { outcomeOf } from '../support/feed.js';
import { portOf } from '../support/gate.js';
import { listen } from '../support/listen.js';

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

/** Starts a proxy that knows the service as `feed.example:443`, a name that doesn't resolve. */
const startProxy = (options: Partial<ConnectProxyOptions> = {}) =>
  startConnectProxy({ targets: { [`${host}:443`]: portOf(service.baseUrl) }, ...options });

const optionsThrough = async (HTTPS_PROXY: string, more: Record<string, string> = {}): Promise<TradeFeedOptions> => {
  const tls = { ca: certificate.cert };
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const proxy = await proxyFromEnvironment({ env: { HTTPS_PROXY, ...more }, tls });
  return { baseUrl: `https://${host}`, apiKey, tls, ...proxy };
};

describe('proxyFromEnvironment', () => {
  it('resolves with no options if the environment has no proxy', async () => {
    expect(await proxyFromEnvironment({ env: {} })).toStrictEqual({});
    expect(await proxyFromEnvironment({ env: { HTTPS_PROXY: 'http://p', NODE_USE_ENV_PROXY: '0' } })).toStrictEqual({});
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

  it("doesn't mistake the certificate of an https: proxy for the service's", async () => {
    await using proxy = await startProxy({ tls: certificate });
    const { failure } = await outcomeOf(await optionsThrough(proxy.url));
    expect(failure).toMatchObject({
      code: 'ticket-endpoint-unreachable',
      detail: expect.stringMatching(/^the proxy .* cannot be used: self-signed certificate/),
    });
  });

  it.each([
    ['2001:db8::1', '[2001:db8::1]:8443'],
    ['feed.example', 'feed.example:8443'],
  ])('asks the proxy for the host %s of a handshake', async (address, authority) => {
    await using proxy = await startProxy({ status: 407 });
    const { agent } = await proxyFromEnvironment({ env: { HTTPS_PROXY: proxy.url } });
    const error = await new Promise((done) => {
      agent?.createConnection({ host: address, port: 8_443, defaultPort: 443 }, done);
    });
    expect(error).toMatchObject({ message: expect.stringContaining(`refused the connection to ${authority}`) });
    expect(proxy.requests).toMatchObject([{ authority, headers: { host: authority } }]);
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

describe('a failure while HTTPS_PROXY is set', () => {
  beforeEach(() => {
    const HTTPS_PROXY = 'http://planted-user:planted-password@planted.example:3128';
    jest.replaceProperty(process, 'env', { PATH: process.env['PATH'], HTTPS_PROXY });
  });
  afterEach(() => void jest.restoreAllMocks());

  const hint = /; HTTPS_PROXY is set, but the feed doesn't use it: pass `await proxyFromEnvironment\(\)`/;
  // Not an address of the loopback network, but nothing listens there.
  const direct = { baseUrl: 'https://0.0.0.0:1', apiKey: 'planted-key' };
  const failureOf = async (options: TradeFeedOptions = direct) => (await outcomeOf(options)).failure;

  it.each<[string, TradeFeedOptions]>([
    ['on this thread', direct],
    ["in a worker, and to leave out `receiveIn: 'worker'`", { ...direct, receiveIn: 'worker' }],
  ])("says that the feed doesn't use it, and what to pass: %s", async (_where, options) => {
    const failure = await failureOf(options);
    expect(failure.code).toBe('ticket-endpoint-unreachable');
    expect(failure.message).toMatch(hint);
    expect(failure.message).not.toContain('planted');
    const { receiveIn } = options;
    expect(failure.message.includes("and leave out `receiveIn: 'worker'`")).toBe(receiveIn === 'worker');
    expect(failure.toPublic().message).not.toContain('HTTPS_PROXY');
  });

  it('says so for the handshake if only the ticket request uses the proxy', async () => {
    await using proxy = await startProxy();
    const options = { ...(await optionsThrough(proxy.url)), agent: undefined, handshakeTimeoutMs: 1_000 };
    const { code, message } = await failureOf(options);
    expect(code).toBe('handshake-unreachable');
    expect(message).toMatch(hint);
  });

  it.each<[string, object, () => Promise<TradeFeedOptions> | TradeFeedOptions]>([
    ['NO_PROXY names the host', { NO_PROXY: '0.0.0.0' }, () => ({})],
    ['NODE_USE_ENV_PROXY is 0', { NODE_USE_ENV_PROXY: '0' }, () => ({})],
    ['the host is this machine', {}, () => ({ baseUrl: 'http://127.0.0.1:1' })],
    ['the feed uses the proxy', { HTTPS_PROXY: 'http://127.0.0.1:1' }, () => proxyFromEnvironment()],
  ])("doesn't mention it if %s", async (_case, env, more) => {
    Object.assign(process.env, env);
    const { code, message } = await failureOf({ ...direct, ...(await more()) });
    expect(code).toBe('ticket-endpoint-unreachable');
    expect(message).not.toContain('HTTPS_PROXY');
  });
});

const url = new URL('https://feed.example:8443');

const tunnelThrough = (proxy: string): Promise<Socket> => openTunnel(new URL(proxy), url);

describe('openTunnel', () => {
  it.each([200, 204])("connects to the URL's host and port in both directions after HTTP %i", async (status) => {
    await using server = await listen(createServer((socket) => socket.pipe(socket)));
    const { port } = server;
    await using proxy = await startConnectProxy({ targets: { 'feed.example:8443': port }, status });
    const socket = await tunnelThrough(proxy.url);
    socket.write('echo');
    const [echo] = (await once(socket.ref(), 'data')) as [Buffer];
    expect(echo.toString()).toBe('echo');
    // A quiet feed must keep its connection.
    expect(socket.timeout).toBe(0);
    socket.destroy();
  });

  it.each([
    ['user:p%40ss', 'user:p@ss'],
    ['user:100%', 'user:100%'],
    ['user:%ff', 'user:%ff'],
  ])('accepts the proxy credentials %s', async (inAddress, credentials) => {
    await using proxy = await startConnectProxy({ targets: { 'feed.example:8443': 1 }, status: 403 });
    await expect(tunnelThrough(proxy.url.replace('//', `//${inAddress}@`))).rejects.toThrow('403');
    expect(proxy.requests[0]?.headers).toMatchObject({
      'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}`,
    });
  });

  it('reports a proxy without TLS by the reason, not with a line from OpenSSL', async () => {
    await using proxy = await startConnectProxy({ targets: {} });
    const { host } = new URL(proxy.url);
    await expect(tunnelThrough(`https://${host}`)).rejects.toMatchObject({
      message: `the proxy ${host} cannot be used: TLS: wrong version number`,
    });
  });
});

const HTTPS_PROXY = 'http://proxy.example:3128';

describe('proxyFor', () => {
  const through: readonly (readonly [env: Record<string, string>, proxy: string | undefined])[] = [
    [{ HTTPS_PROXY }, 'http://proxy.example:3128/'],
    [{ https_proxy: 'http://lower.example', HTTPS_PROXY }, 'http://lower.example/'],
    [{ HTTPS_PROXY: 'https://proxy.example' }, 'https://proxy.example/'],
    [{ HTTPS_PROXY: ' proxy.example:3128 ' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'eed.example, example.feed' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'feed.example:8443' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: '*x.example' }, 'http://proxy.example:3128/'],
    [{ HTTPS_PROXY, NO_PROXY: 'feed.example', no_proxy: 'other.example' }, 'http://proxy.example:3128/'],
  ];
  // The ticket request and the handshake follow one rule.
  const both = ['https://feed.example/v1', 'wss://feed.example/ws'].map((address) => new URL(address));

  const directly: readonly Record<string, string>[] = [
    {},
    { https_proxy: '', HTTPS_PROXY },
    { HTTP_PROXY: HTTPS_PROXY, ALL_PROXY: HTTPS_PROXY },
    { HTTPS_PROXY, NODE_USE_ENV_PROXY: '0' },
    { HTTPS_PROXY, NO_PROXY: '*' },
    { HTTPS_PROXY, NO_PROXY: 'other.example, *' },
    { HTTPS_PROXY, NO_PROXY: 'FEED.Example' },
    { HTTPS_PROXY, NO_PROXY: 'feed.example:443' },
    { HTTPS_PROXY, NO_PROXY: 'example' },
    { HTTPS_PROXY, NO_PROXY: '*.example:443' },
    { HTTPS_PROXY, no_proxy: 'a.example,feed.example' },
    { HTTPS_PROXY, NO_PROXY: 'a.example feed.example' },
  ];
  it.each([...through, ...directly.map((env) => [env, undefined] as const)])('with %j is %s', (env, proxy) => {
    expect(both.map((url) => proxyFor(url, env)?.href)).toEqual([proxy, proxy]);
  });

  it('is a direct connection to this machine, with and without TLS', () => {
    const here =
      'https://localhost wss://127.0.0.1:8443/ws https://127.0.0.2 https://[::1] http://127.0.0.1 ws://[::1]';
    for (const url of here.split(' ')) expect([url, proxyFor(new URL(url), { HTTPS_PROXY })]).toEqual([url, undefined]);
  });

  it('recognizes an IPv6 address in NO_PROXY', () => {
    for (const NO_PROXY of ['2001:db8::1', '[2001:db8::1]', '[2001:db8::1]:443']) {
      expect(proxyFor(new URL('https://[2001:db8::1]'), { HTTPS_PROXY, NO_PROXY })).toBeUndefined();
      expect(proxyFor(new URL('https://[2001:db8::2]'), { HTTPS_PROXY, NO_PROXY })?.href).toBe(`${HTTPS_PROXY}/`);
    }
  });
});

it.each(['socks5://proxy.example:1080', 'http://', 'http://user:planted-password@', 'ftp://proxy.example'])(
  'proxyOf refuses %s without repeating it',
  (address) => {
    const read = (): unknown => proxyOf({ HTTPS_PROXY: address });
    expect(read).toThrow(expect.objectContaining({ code: 'invalid-options', option: 'HTTPS_PROXY' }));
    expect(read).toThrow('must be the http: or https: address of a proxy');
    expect(read).not.toThrow(/planted|socks5|ftp/);
  },
);
