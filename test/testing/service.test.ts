import { beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { inspect } from 'node:util';
import { type Payload, serviceDefaults, startTradeFeedService } from 'rx-trade-feed/testing';
import { defer, EMPTY, finalize, NEVER, Observable, of, Subject, type Subscriber, throwError } from 'rxjs';
import { isTradeFeedError } from '../../src/index.js';
import { serviceSettings, type TradeFeedServiceOptions } from '../../src/testing/service-options.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { portOf } from '../support/gate.js';
import {
  connectAs,
  connectNew,
  connectTo,
  errorCode,
  handshakeLines,
  nextEvent,
  openRaw,
  openSocket,
  postTicket,
  receivedBy,
  recordEvents,
  refusedHandshake,
  send,
  takeTicket,
} from './bare-client.js';
import { serviceFactory } from './service-under-test.js';

const start = serviceFactory();
const atOnce = { limits: { freeDelayMs: 0 } };

describe('the service listens', () => {
  it('on 127.0.0.1 and nowhere else, on a free port', async () => {
    const service = await start();
    expect(service.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const port = portOf(service.baseUrl);
    const sockets = ['127.0.0.1', '127.0.0.2', '::1'].map((host) => connect(port, host));
    const reached = await Promise.allSettled(sockets.map((socket) => once(socket, 'connect')));
    for (const socket of sockets) socket.destroy();
    expect(reached.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  it('on the port of the options, unless it is in use', async () => {
    const first = await start();
    const port = portOf(first.baseUrl);
    await expect(startTradeFeedService({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await first.shutdown();
    expect((await start({ port })).baseUrl).toBe(first.baseUrl);
  });

  it.each([
    ['https://feed.example:8443/', 'wss://feed.example:8443/ws'],
    ['http://localhost:8080', 'ws://localhost:8080/ws'],
  ])('and reports it in baseUrl, while tickets contain publicUrl %s', async (publicUrl, wssUrl) => {
    const service = await start({ publicUrl });
    expect(service.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const { wss_url } = await takeTicket(service, service.createAccount().createApiKey());
    expect(wss_url).toBe(wssUrl);
  });
});

describe('a service with TLS', () => {
  let tls: Certificate;
  beforeAll(async () => {
    tls = await certificateFor();
  });

  it('serves tickets and streams, and shuts down', async () => {
    const service = await start({ ...atOnce, tls });
    expect(service.baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const ca = tls.cert;
    const ticket = await takeTicket(service, service.createAccount().createApiKey(), undefined, ca);
    expect(ticket.wss_url).toBe(`${service.baseUrl.replace('https', 'wss')}/ws`);
    const socket = await openSocket(ticket, { ca });
    expect(errorCode(await refusedHandshake(ticket, { ca }))).toBe('ticket-consumed');
    service.push('market', 'over TLS');
    expect(await socket.first(1)).toEqual(['over TLS']);
    await service.shutdown();
    expect(await socket.closed).toEqual({ code: 1001, reason: 'server shutdown' });
  });

  it('needs a valid key and certificate, and prints neither', async () => {
    const message = /`tls` must be a PEM key and its PEM certificate \(/;
    for (const key of ['no key', (await certificateFor()).key])
      await expect(startTradeFeedService({ tls: { key, cert: tls.cert } })).rejects.toThrow(message);
  });
});

it('push sends a string as text and bytes as binary, unchanged and in order, whatever their size', async () => {
  const service = await start(atOnce);
  const socket = await connectNew(service);
  const payloads: Payload[] = [0, 1, 125, 126, 65_535, 65_536].flatMap((size) => [
    'é'.repeat(size / 2),
    Buffer.alloc(size, size % 251),
  ]);
  payloads.push(new Uint8Array([9, 8, 7, 6]).subarray(1, 3));
  for (const payload of payloads) service.push('market', payload);
  await socket.first(payloads.length);
  expect(socket.messages.map(({ isBinary }) => isBinary)).toEqual(payloads.map((each) => typeof each !== 'string'));
  socket.messages.forEach(({ data }, index) => {
    expect(data.equals(Buffer.from(payloads[index] as Uint8Array))).toBe(true);
  });
});

describe('sources', () => {
  it('are subscribed to once, from start to shutdown, and sent to all connections of their feed', async () => {
    const calls: string[] = [];
    const payloads = new Subject<string>();
    const raw = defer(() => {
      calls.push('subscribed');
      return payloads;
    }).pipe(finalize(() => calls.push('unsubscribed')));
    const service = await start({ ...atOnce, sources: { raw } });
    const sockets = await Promise.all(['raw', 'raw', 'market'].map((feed) => connectNew(service, feed)));
    payloads.next('1');
    payloads.next('2');
    service.push('market', 'pushed');
    expect(await sockets[0]?.first(2)).toEqual(['1', '2']);
    expect(await sockets[1]?.first(2)).toEqual(['1', '2']);
    expect(await sockets[2]?.first(1)).toEqual(['pushed']);
    expect(calls).toEqual(['subscribed']);
    await service.shutdown();
    expect(calls).toEqual(['subscribed', 'unsubscribed']);
    expect(payloads.observed).toBe(false);
  });

  it.each<[string, Observable<unknown>, unknown]>([
    ['completes', EMPTY, undefined],
    ['errors', throwError(() => new Error('boom')), new Error('boom')],
    ['emits a value that is not a payload', of({ a: 1 }), expect.objectContaining({ option: 'payload' })],
  ])('emit an event when one %s, and the service carries on', async (_, ending, error) => {
    const begin = new Subject<void>();
    const market = new Observable<Payload>((subscriber) =>
      begin.subscribe(() => ending.subscribe(subscriber as Subscriber<unknown>)),
    );
    const service = await start({ ...atOnce, sources: { market, raw: NEVER } });
    const socket = await connectNew(service);
    const ended = nextEvent(service, 'source-ended');
    begin.next();
    expect(await ended).toEqual({ type: 'source-ended', at: expect.any(Number), feed: 'market', error });
    service.push('market', 'goes on');
    expect(await socket.first(1)).toEqual(['goes on']);
  });
});

describe('the shutdown (contract 3.2, 7.3)', () => {
  it('closes every connection with 1001 and its reason, reports that, and completes the events', async () => {
    const service = await start();
    const account = service.createAccount();
    const sockets = await Promise.all(['market', 'raw'].map((feed) => connectNew(service, feed)));
    const events = recordEvents(service);
    let isCompleted = false;
    service.events$.subscribe({ complete: () => (isCompleted = true) });
    await service.shutdown();
    for (const { closed } of sockets) expect(await closed).toEqual({ code: 1001, reason: 'server shutdown' });
    const emitted = { type: 'connection-closed', code: 1001, reason: 'server shutdown', by: 'service' };
    expect(events).toMatchObject([emitted, emitted]);
    expect(isCompleted).toBe(true);
    await expect(postTicket(service, account.createApiKey())).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    service.push('market', 'nobody');
    account.expireAccess();
    account.revokeAccess();
  });

  it('answers 503 to a request and a handshake that were already under way', async () => {
    const service = await start();
    const account = service.createAccount();
    const ticket = await takeTicket(service, account.createApiKey());
    // The client never answers the close frame, so the shutdown waits while the two finish.
    const mute = await openRaw(service, await takeTicket(service, account.createApiKey()));
    const begun = async (...lines: string[]) => {
      const socket = connectTo(service);
      const answer = receivedBy(socket);
      await once(socket, 'connect');
      await new Promise((resolve) => socket.write(lines.join('\r\n'), resolve));
      return { socket, answer };
    };
    const head = [`X-API-Key: ${account.createApiKey()}`, 'Content-Type: application/json', 'Content-Length: 2'];
    const handshake = await begun(...handshakeLines(ticket.ticket), '');
    const request = await begun('POST /v1/wss/tickets HTTP/1.1', 'Host: a', 'Expect: 100-continue', ...head, '', '');
    // When the service answers with 100, it has read the heads of both, in the order in which they were sent.
    await once(request.socket, 'data');
    const events = recordEvents(service);
    const stopped = service.shutdown();
    request.socket.write('{}');
    handshake.socket.write('\r\n');
    expect(String(await request.answer)).toMatch(/HTTP\/1\.1 503 [^]*shutting-down/);
    expect(String(await handshake.answer)).toMatch(/^HTTP\/1\.1 503 [^]*shutting-down/);
    mute.socket.destroy();
    await stopped;
    expect(events).toMatchObject([{ type: 'connection-closed' }, { type: 'handshake-refused', status: 503 }]);
  });
});

it('secrets appear neither in events nor in the service or an account', async () => {
  const service = await start(atOnce);
  const events = recordEvents(service);
  const account = service.createAccount();
  const secrets = [account.createApiKey(), account.createApiKey()];
  const [key = ''] = secrets;
  const ticket = await takeTicket(service, key);
  const revoked = await takeTicket(service, key);
  secrets.push(ticket.ticket, revoked.ticket);
  service.revokeTicket(revoked.ticket);
  await refusedHandshake(revoked, { url: `${revoked.wss_url}?ticket=${revoked.ticket}&key=${key}` });
  const socket = await openSocket(ticket, {
    headers: { Authorization: `Bearer ${ticket.ticket}`, 'X-API-Key': key },
    protocols: [],
  });
  await refusedHandshake(ticket);
  await postTicket(service, ticket.ticket);
  socket.ws.close(4000, ticket.ticket);
  await socket.closed;
  await service.shutdown();
  expect(new Set(events.map(({ type }) => type)).size).toBe(7);
  const shown = [events, service, account].map(
    (each) => JSON.stringify(each) + inspect(each, { depth: 9, showHidden: true }),
  );
  for (const secret of secrets) expect(shown.join('')).not.toContain(secret);
});

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
  it('replace single defaults, use the default for undefined, and are not changed', () => {
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

  it.each<[unknown, string]>([
    [null, '`options` must'],
    [{ prot: 1 }, "`prot` doesn't exist: the options are port, tls, publicUrl, sources,"],
    [{ port: -1 }, '`port` must be a whole number from 0 to 65535'],
    [{ tls: 'secret pem' }, '`tls` must'],
    [{ tls: { cert: 'x' } }, '`tls.key` must'],
    [{ tls: { key: 'x' } }, '`tls.cert` must'],
    [{ tls: { key: 'x', cert: 'x', ca: 'x' } }, "`tls.ca` doesn't exist: the options are key, cert"],
    [{ publicUrl: 1 }, '`publicUrl` must'],
    [{ sources: { market: [] } }, '`sources.market` must'],
    [{ sources: { candles: NEVER } }, "`sources.candles` doesn't exist: the options are market, raw"],
    [{ limits: 1 }, '`limits` must'],
    [{ subprotocols: { raw: 'two words' } }, '`subprotocols.raw` must'],
    [{ errorBody: {} }, '`errorBody` must'],
    [{ scheduler: {} }, '`scheduler` must'],
  ])('are refused if they are invalid: %j', (options, message) => {
    expect(refused(options)).toContain(message);
  });

  it('keep each limit within bounds', () => {
    const wrong = {
      ...{ ticketLifetimeMs: -1, windowMs: 0, ticketsPerWindow: 1.5, capacity: -1, backlogBytes: NaN },
      ...{ freeDelayMs: 2 ** 31, requestBytes: '1', requestTimeoutMs: Infinity, closeTimeoutMs: NaN },
      shutdownTimeoutMs: null,
    };
    expect(Object.keys(wrong)).toEqual(Object.keys(serviceDefaults.limits));
    for (const [name, value] of Object.entries(wrong))
      expect(refused({ limits: { [name]: value } })).toContain(`\`limits.${name}\` must be a`);
  });

  it('accept only an origin as publicUrl, and http: only for a loopback host', () => {
    const accepted = `https://feed.example https://feed.example/ HTTPS://FEED.example:444 http://127.0.0.1:80
      http://localhost https://[::1]:8443`;
    for (const publicUrl of accepted.split(/\s+/)) expect(serviceSettings({ publicUrl }).publicUrl).toBe(publicUrl);
    const wrong = `feed.example wss://feed.example http://feed.example https://feed.example/path https://user@feed.example
      https://feed.example?query https://feed.example#part https://feed.example:99999 https://`;
    for (const publicUrl of ['', ' https://feed.example', ...wrong.split(/\s+/)])
      expect(refused({ publicUrl })).toContain('`publicUrl` must be an origin');
  });
});

type Method = 'GET' | 'POST' | 'OPTIONS';

describe('the addresses of the service (contract 4)', () => {
  const unknown = ['/', '/v1', '/v1/wss/tickets/', '/V1/wss/tickets', '/ws/', '//', '/%'];
  it.each<[Method, string, string | undefined]>([
    ...unknown.map((path): [Method, string, undefined] => ['POST', path, undefined]),
    ['GET', '/v1/wss/tickets', 'POST'],
    ['POST', '/ws', 'GET'],
    ['OPTIONS', '/ws', 'GET'],
  ])('answer 404 to %s %s, or 405 with its method: %s', async (method, path, allow) => {
    const service = await start();
    const violation = nextEvent(service, 'violation');
    const answer = await send(service.baseUrl + path, { method });
    const expected = allow ? [405, 'method-not-allowed', allow] : [404, 'not-found', undefined];
    expect([answer.status, errorCode(answer), answer.headers['allow']]).toEqual(expected);
    expect(await violation).toMatchObject({ rule: allow ? 'wrong-method' : 'unknown-path' });
  });

  it('answer 405 without a body to HEAD, and 426 to a GET without an upgrade', async () => {
    const service = await start();
    const head = await send(`${service.baseUrl}/v1/wss/tickets`, { method: 'HEAD' });
    expect([head.status, head.headers['allow'], head.body]).toEqual([405, 'POST', undefined]);
    const get = await send(`${service.baseUrl}/ws`);
    expect([get.status, errorCode(get), get.headers['upgrade']]).toEqual([426, 'upgrade-required', 'websocket']);
  });
});

describe('calls with invalid values', () => {
  it.each<[string, unknown[], string]>([
    ['createAccount', [{ plan: 'gold' }], '`plan` must'],
    ['createAccount', [{ active: 1 }], '`active` must'],
    ['createAccount', [{ name: 'x' }], "`name` doesn't exist: the options are plan, active, entitled"],
    ['setPlan', ['gold'], '`plan` must'],
    ['createApiKey', ['line\n'], '`key` ends with a line break. Remove it'],
    ['createApiKey', ['two words'], '`key` must'],
    ['createApiKey', ['taken'], '`key` must be new, but it is already a key of account-1. Pass another one'],
    ['push', ['candles', 'x'], '`feed` must'],
    ['push', ['market', { a: 1 }], '`payload` must'],
    ['setCapacity', [-1], '`capacity` must'],
    ['failCredentials', ['no'], '`isFailing` must'],
    ['setWaitingFrames', ['late'], '`behavior` must'],
    ['setTicketEndpoint', ['slow'], '`behavior` must'],
    ['setTicketEndpoint', [{ status: 101 }], '`behavior.status` must be a whole number from 200 to 599'],
    ['setTicketEndpoint', [{ delayMs: -1 }], '`behavior.delayMs` must be a number of ms, from 0'],
    ['setHandshake', [{ headers: { name: 'two\nlines' } }], '`behavior.headers` must'],
    ['setTicketEndpoint', [{ body: {} }], '`behavior.body` must'],
    ['setTicketEndpoint', [{ subprotocol: 'x' }], "`behavior.subprotocol` doesn't exist"],
    ['setHandshake', [{ subprotocol: 'two words' }], '`behavior.subprotocol` must'],
    ['closeConnections', [1006], '`code` must be a close code from 1000 to 1003, 1007 to 1014 or 3000 to 4999'],
    ['closeConnections', [4000, 'é'.repeat(62)], '`reason` must be a string of at most 123 bytes'],
  ])('%s refuses %j, and names what is wrong', async (method, values, message) => {
    const service = await start();
    service.createAccount().createApiKey('taken');
    const calls: Record<string, unknown> = { ...service, ...service.createAccount() };
    expect(() => (calls[method] as (...values: unknown[]) => void)(...values)).toThrow(message);
  });

  it('restart rejects with the reason, and the service keeps running', async () => {
    const service = await start();
    const { ws } = await connectAs(service, service.createAccount().createApiKey());
    const restarted = service.restart({ connections: 'cut' as 'drop' });
    await expect(restarted).rejects.toThrow("`connections` must be 'close' or 'drop'");
    expect(ws.readyState).toBe(ws.OPEN);
  });
});
