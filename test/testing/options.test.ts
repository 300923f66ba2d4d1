import { describe, expect, it } from '@jest/globals';
import { serviceDefaults } from 'rx-trade-feed/testing';
import { NEVER } from 'rxjs';
import { isTradeFeedError } from '../../src/index.js';
import { serviceSettings, type TradeFeedServiceOptions } from '../../src/testing/options.js';
import { connectAs, errorCode, nextEvent, send, sendRaw } from './bare-client.js';
import { serviceFactory } from './service-under-test.js';

const refused = (options: unknown): string => {
  try {
    serviceSettings(options as TradeFeedServiceOptions);
  } catch (error) {
    expect(isTradeFeedError(error) && error.code).toBe('invalid-options');
    return (error as Error).message;
  }
  throw new Error('The options were not refused.');
};

describe('the options of the service', () => {
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

  const token = 'must be a token of RFC 9110 (5.6.2), such as "mmp.trade-batch.v1"';
  const origin = '`publicUrl` must be an origin, such as "https://feed.example"; http: only for a loopback host';
  const options = 'port, tls, publicUrl, sources, limits, subprotocols, errorBody, scheduler';
  it.each<[unknown, string]>([
    [null, '`options` must be an object'],
    [{ prot: 1 }, `\`prot\` must be left out: the options are ${options}`],
    [{ port: -1 }, '`port` must be a whole number from 0 to 65535, got -1'],
    [{ tls: 'secret pem' }, '`tls` must be an object'],
    [{ tls: { cert: 'x' } }, '`tls.key` must be a PEM text or a Buffer'],
    [{ tls: { key: 'x' } }, '`tls.cert` must be a PEM text or a Buffer'],
    [{ tls: { key: 'x', cert: 'x', ca: 'x' } }, '`tls.ca` must be left out: the options are key, cert'],
    [{ publicUrl: 1 }, `${origin}, got 1`],
    [{ sources: { market: [] } }, '`sources.market` must be an Observable of strings or bytes'],
    [{ sources: { candles: NEVER } }, '`sources.candles` must be left out: the options are market, raw'],
    [{ limits: 1 }, '`limits` must be an object, got 1'],
    [{ subprotocols: { raw: 'two words' } }, `\`subprotocols.raw\` ${token}`],
    [{ errorBody: {} }, '`errorBody` must be a function'],
    [{ scheduler: {} }, '`scheduler` must be an RxJS scheduler'],
  ])('%j is refused', (options, message) => {
    expect(refused(options)).toContain(message);
  });

  it('bound each limit', () => {
    const wrong = {
      ...{ ticketLifetimeMs: -1, windowMs: 0, ticketsPerWindow: 1.5, capacity: -1, backlogBytes: NaN },
      ...{ freeDelayMs: 2 ** 31, requestBytes: '1', requestTimeoutMs: Infinity, closeTimeoutMs: NaN },
      shutdownTimeoutMs: null,
    };
    expect(Object.keys(wrong)).toEqual(Object.keys(serviceDefaults.limits));
    for (const [name, value] of Object.entries(wrong))
      expect(refused({ limits: { [name]: value } })).toContain(`\`limits.${name}\` must be a`);
  });

  it('accept only an origin as publicUrl, without TLS only on this machine', () => {
    const accepted = `https://feed.example https://feed.example/ HTTPS://FEED.example:444 http://127.0.0.1:80
      http://localhost https://[::1]:8443`;
    for (const publicUrl of accepted.split(/\s+/)) expect(serviceSettings({ publicUrl }).publicUrl).toBe(publicUrl);
    const wrong = `feed.example wss://feed.example http://feed.example https://feed.example/path https://user@feed.example
      https://feed.example?query https://feed.example#part https://feed.example:99999 https://`;
    for (const publicUrl of ['', ' https://feed.example', ...wrong.split(/\s+/)])
      expect(refused({ publicUrl })).toContain(origin);
  });
});

const start = serviceFactory();

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS';

describe('the addresses of the service (contract 4)', () => {
  it.each(['/', '/v1', '/v1/wss/tickets/', '/v2/wss/tickets', '/V1/wss/tickets', '/ws/', '/ws/market', '//', '/%'])(
    '404 for %s',
    async (path) => {
      const service = await start();
      const violation = nextEvent(service, 'violation');
      const answer = await send(service.baseUrl + path, { method: 'POST' });
      expect([answer.status, errorCode(answer)]).toEqual([404, 'not-found']);
      expect(await violation).toMatchObject({ rule: 'unknown-path' });
    },
  );

  it.each<[Method, string, string]>([
    ['GET', '/v1/wss/tickets', 'POST'],
    ['PUT', '/v1/wss/tickets', 'POST'],
    ['DELETE', '/v1/wss/tickets', 'POST'],
    ['OPTIONS', '/v1/wss/tickets', 'POST'],
    ['POST', '/ws', 'GET'],
    ['OPTIONS', '/ws', 'GET'],
  ])('405 for %s %s: Allow: %s', async (method, path, allow) => {
    const service = await start();
    const violation = nextEvent(service, 'violation');
    const answer = await send(service.baseUrl + path, { method });
    expect([answer.status, errorCode(answer), answer.headers['allow']]).toEqual([405, 'method-not-allowed', allow]);
    expect(await violation).toMatchObject({ rule: 'wrong-method' });
  });

  it('405 for HEAD, without a body; 426 for a GET without an upgrade', async () => {
    const service = await start();
    const head = await send(`${service.baseUrl}/v1/wss/tickets`, { method: 'HEAD' });
    expect([head.status, head.headers['allow'], head.body]).toEqual([405, 'POST', undefined]);
    const get = await send(`${service.baseUrl}/ws`);
    expect([get.status, errorCode(get), get.headers['upgrade']]).toEqual([426, 'upgrade-required', 'websocket']);
  });

  it('400 for a request that is not HTTP', async () => {
    const service = await start();
    expect(await sendRaw(service, 'this is not HTTP')).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('calls with invalid values', () => {
  const behavior = '`behavior` must be "normal", "unreachable" or an object that describes the answer';
  const headers = '`behavior.headers` must be an object of HTTP headers, such as { "Retry-After": "1" }';
  const code = '`code` must be a close code from 1000 to 1003, 1007 to 1014 or 3000 to 4999, got 1006';
  const token = '`behavior.subprotocol` must be a token of RFC 9110 (5.6.2), such as "mmp.trade-batch.v1"';
  const key = '`key` must be a string of visible ASCII characters without spaces';
  it.each<[string, unknown[], string]>([
    ['createAccount', [{ plan: 'gold' }], "`plan` must be 'free' or 'developer'"],
    ['createAccount', [{ active: 1 }], '`active` must be true or false, got 1'],
    ['createAccount', [{ name: 'x' }], '`name` must be left out: the options are plan, active, entitled'],
    ['setPlan', ['gold'], "`plan` must be 'free' or 'developer'"],
    ...['', 'two words', 'né', 'line\n', null, 7].map((value): [string, unknown[], string] => [
      'createApiKey',
      [value],
      key,
    ]),
    ['push', ['candles', 'x'], "`feed` must be 'market' or 'raw'"],
    ['push', ['market', { a: 1 }], '`payload` must be a string or a Uint8Array'],
    ['setCapacity', [-1], '`capacity` must be a whole number, 0 or more, or Infinity, got -1'],
    ['failCredentials', ['no'], '`isFailing` must be true or false'],
    ['setTicketEndpoint', ['slow'], behavior],
    ['setTicketEndpoint', [{ status: 101 }], '`behavior.status` must be a whole number from 200 to 599, got 101'],
    ['setTicketEndpoint', [{ delayMs: -1 }], '`behavior.delayMs` must be a number of ms, from 0 to 2147483647, got -1'],
    ['setHandshake', [{ headers: { name: 'two\nlines' } }], headers],
    ['setTicketEndpoint', [{ body: {} }], '`behavior.body` must be a string'],
    ['setTicketEndpoint', [{ subprotocol: 'x' }], '`behavior.subprotocol` must be left out: the options are delayMs'],
    ['setHandshake', [{ subprotocol: 'two words' }], token],
    ['closeConnections', [1006], code],
    ['closeConnections', [4000, 'é'.repeat(62)], '`reason` must be a string of at most 123 bytes'],
  ])('%s refuses %j with the reason', async (method, values, message) => {
    const service = await start();
    const calls = { ...service, ...service.createAccount() } as unknown as Record<
      string,
      (...values: unknown[]) => void
    >;
    expect(() => calls[method]?.(...values)).toThrow(message);
  });

  it('restart rejects with the reason, and the service keeps running', async () => {
    const service = await start();
    const { ws } = await connectAs(service, service.createAccount().createApiKey());
    const restarted = service.restart({ connections: 'cut' as 'drop' });
    await expect(restarted).rejects.toThrow("`connections` must be 'close' or 'drop'");
    expect(ws.readyState).toBe(ws.OPEN);
  });
});
