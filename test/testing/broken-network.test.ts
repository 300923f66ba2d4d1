import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import type { TradeFeedService, TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import { Subject } from 'rxjs';
import { tradeFeedEvents$ } from '../../src/index.js';
import type { WireTicket } from '../../src/protocol/contract.js';
import { certificateFor } from '../support/certificate.js';
import { fakeTimers } from '../support/fake-timers.js';
import { optionsFor, until } from '../support/feed.js';
import { portOf } from '../support/gate.js';
import { waitFor } from '../support/wait-for.js';
import {
  closeOf,
  connectAs,
  connectNew,
  connectTo,
  errorCode,
  handshakeLines,
  nextEvent,
  openSocket,
  postTicket,
  recordEvents,
  refusedHandshake,
  send,
  sendRaw,
  takeTicket,
} from './bare-client.js';
import { manualClock, serviceFactory, withKey } from './service-under-test.js';

const begin = serviceFactory();
const start = (options: TradeFeedServiceOptions = {}) =>
  begin({ ...options, limits: { freeDelayMs: 0, ...options.limits } });

// Enough turns of the event loop for bytes on loopback to arrive and be answered.
const quiet = async (): Promise<void> => {
  for (let n = 0; n < 50; n += 1) await turn();
};

it.each([false, true])(
  'dropConnections cuts each open connection without a close frame, after its frames (TLS: %s)',
  async (isTls) => {
    const tls = isTls ? await certificateFor() : undefined;
    const { service, key } = await withKey(start({ tls }));
    const socket = await connectAs(service, key, undefined, tls?.cert);
    const events = recordEvents(service);
    service.push('market', 'last');
    service.dropConnections();
    expect(await socket.closed).toEqual({ code: 1006, reason: '' });
    expect(await socket.first(1)).toEqual(['last']);
    expect(events).toMatchObject([{ type: 'connection-closed', code: 1006, reason: '', by: 'service', frames: 1 }]);
  },
);

it.each([
  [1000, ''],
  [1009, ''],
  [4999, 'é'.repeat(61)],
])('closeConnections closes each open connection with %d "%s"', async (code, reason) => {
  const service = await start();
  const sockets = [await connectNew(service), await connectNew(service)];
  const events = recordEvents(service);
  service.closeConnections(code, reason);
  for (const { closed } of sockets) expect(await closed).toEqual({ code, reason });
  expect(events).toMatchObject(sockets.map(() => ({ type: 'connection-closed', code, reason, by: 'service' })));
});

describe('stall', () => {
  it.each([false, true])('sends nothing, not even a pong, until resume sends it in order (TLS: %s)', async (isTls) => {
    const tls = isTls ? await certificateFor() : undefined;
    const service = await start({ tls });
    const { ws, messages, first, closed } = await connectNew(service, undefined, tls?.cert);
    const pongs: string[] = [];
    ws.on('pong', (data) => pongs.push(String(data)));
    service.stall();
    service.stall();
    ws.ping('hello?');
    service.push('market', '1');
    service.push('market', '2');
    service.closeConnections(1011);
    await quiet();
    expect([messages, pongs, ws.readyState]).toEqual([[], [], ws.OPEN]);
    service.resume();
    expect(await first(2)).toEqual(['1', '2']);
    expect((await closed).code).toBe(1011);
  });

  it('reads nothing, so a message of the client is a violation only after resume', async () => {
    const service = await start();
    const { ws, closed } = await connectNew(service);
    const events = recordEvents(service);
    service.stall();
    ws.send('subscribe');
    await quiet();
    expect(events).toEqual([]);
    service.resume();
    expect((await closed).code).toBe(1008);
  });

  it('answers no ticket request, no handshake and no other request until resume', async () => {
    const { service, key } = await withKey(start());
    const ticket = await takeTicket(service, service.createAccount().createApiKey());
    const events = recordEvents(service);
    service.stall();
    const answers: string[] = [];
    const waiting = [
      postTicket(service, key).then(({ status }) => answers.push(`ticket ${status}`)),
      openSocket(ticket).then(() => answers.push('handshake')),
      refusedHandshake({ ...ticket, ticket: 'unknown' }).then(({ status }) => answers.push(`handshake ${status}`)),
      refusedHandshake(ticket, { url: `${ticket.wss_url}/x` }).then(({ status }) => answers.push(`path ${status}`)),
      send(`${service.baseUrl}/health`).then(({ status }) => answers.push(`get ${status}`)),
    ];
    await quiet();
    expect(answers).toEqual([]);
    expect(events.filter(({ type }) => type !== 'violation')).toEqual([]);
    service.resume();
    await Promise.all(waiting);
    expect(answers.sort()).toEqual(['get 404', 'handshake', 'handshake 401', 'path 404', 'ticket 200']);
  });

  it('forgets the requests of clients that left: they get no ticket and replace no connection', async () => {
    const service = await start();
    const account = service.createAccount();
    const [key, other] = [account.createApiKey(), account.createApiKey()];
    const ticket = await takeTicket(service, key);
    service.stall();
    const events = recordEvents(service);
    const request = connectTo(service);
    request.write(`POST /v1/wss/tickets HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\nContent-Length: 0\r\n\r\n`);
    const handshake = connectTo(service);
    handshake.write([...handshakeLines(ticket.ticket), '', ''].join('\r\n'));
    await quiet();
    for (const socket of [request, handshake]) socket.end();
    await Promise.all([closeOf(request.resume()), closeOf(handshake.resume())]);
    await quiet();
    service.resume();
    expect(events).toEqual([]);
    expect((await openSocket(ticket)).ws.protocol).toBe(ticket.subprotocol);
    await takeTicket(service, other);
  });

  it('makes a client too slow once more than the backlog waits for it', async () => {
    const service = await start({ limits: { backlogBytes: 1_000 } });
    const { closed, messages } = await connectNew(service);
    service.stall();
    const ended = nextEvent(service, 'connection-closed');
    for (let n = 0; n < 3; n += 1) {
      service.push('market', 'x'.repeat(600));
      await turn();
    }
    expect(await ended).toMatchObject({ code: 1013, reason: 'client too slow' });
    service.resume();
    expect((await closed).code).toBe(1013);
    expect(messages).toHaveLength(2);
  });

  it.each<[string, (service: TradeFeedService) => void]>([
    ['a stall', (service) => service.stall()],
    ['a slow endpoint', (service) => service.setTicketEndpoint({ delayMs: 60_000, status: 500 })],
  ])('and %s end at the shutdown, which closes with 1001 and answers pending requests with 503', async (_, act) => {
    const { service, key } = await withKey(start());
    const { closed, first } = await connectNew(service);
    act(service);
    service.push('market', 'last');
    const answer = postTicket(service, key);
    await quiet();
    await service.shutdown();
    expect(await first(1)).toEqual(['last']);
    expect(await closed).toEqual({ code: 1001, reason: 'server shutdown' });
    expect(errorCode(await answer)).toBe('shutting-down');
  });
});

describe('setTicketEndpoint', () => {
  it('delays each answer by delayMs of the clock, then follows the contract', async () => {
    const { scheduler, advance } = manualClock();
    const { service, key } = await withKey(start({ scheduler }));
    service.setTicketEndpoint({ delayMs: 3_600_000 });
    let status = 0;
    const answer = postTicket(service, key).then((answer) => (status = answer.status));
    await quiet();
    advance(3_599_999);
    await quiet();
    expect(status).toBe(0);
    advance(1);
    expect(await answer).toBe(200);
  });

  it('answers any request with the status, headers and body of the test, and counts no ticket', async () => {
    const service = await start({ limits: { ticketsPerWindow: 1 } });
    const events = recordEvents(service);
    const key = service.createAccount().createApiKey();
    const headers = { 'retry-after': '7', 'content-TYPE': 'text/html' };
    service.setTicketEndpoint({ status: 429, headers, body: '"<html>é"' });
    const answer = await postTicket(service, 'any-key');
    expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '7', 'content-type': 'text/html' } });
    expect(answer.body).toBe('<html>é');
    service.setTicketEndpoint({});
    await takeTicket(service, key);
    expect(events).toMatchObject([{ type: 'fault', endpoint: 'ticket', status: 429 }, { type: 'ticket-issued' }]);
  });
});

describe('setHandshake', () => {
  it('answers with a status, or cuts the connection, and does not use up the ticket', async () => {
    const service = await start();
    const ticket = await takeTicket(service, service.createAccount().createApiKey());
    const events = recordEvents(service);
    service.setHandshake({ status: 502, body: '"bad gateway"' });
    expect(await refusedHandshake(ticket)).toMatchObject({ status: 502, body: 'bad gateway' });
    service.setHandshake('unreachable');
    expect(await sendRaw(service, ...handshakeLines(ticket.ticket))).toBe('');
    service.setHandshake('normal');
    await openSocket(ticket);
    expect(events).toMatchObject([
      { type: 'fault', endpoint: 'handshake', status: 502 },
      { type: 'fault', endpoint: 'handshake', status: undefined },
      { type: 'handshake-accepted' },
    ]);
  });

  it('keeps what a client sends before a slow answer', async () => {
    const { scheduler, advance } = manualClock();
    const service = await start({ scheduler });
    const ticket = await takeTicket(service, service.createAccount().createApiKey());
    service.setHandshake({ delayMs: 1_000 });
    const violation = nextEvent(service, 'violation');
    const socket = connectTo(service);
    socket.write(
      [...handshakeLines(ticket.ticket, { 'Sec-WebSocket-Protocol': ticket.subprotocol }), '', ''].join('\r\n'),
    );
    await quiet();
    socket.write(Buffer.from([0x81, 0x80, 0, 0, 0, 0]));
    await quiet();
    advance(1_000);
    expect(await violation).toMatchObject({ rule: 'client-message' });
    socket.destroy();
  });
});

describe('restart', () => {
  it.each([
    ['close', { code: 1001, reason: 'server shutdown' }],
    ['drop', { code: 1006, reason: '' }],
  ] as const)('comes back on the same port with the same keys but no tickets: %s', async (connections, end) => {
    const { service, key } = await withKey(start());
    const socket = await connectAs(service, key);
    const unused = await takeTicket(service, key);
    const events = recordEvents(service);
    await service.restart({ connections });
    expect(await socket.closed).toEqual(end);
    expect(errorCode(await refusedHandshake(unused))).toBe('ticket-unknown');
    const again = await connectAs(service, key);
    service.push('market', 'after');
    expect(await again.first(1)).toEqual(['after']);
    expect(events).toMatchObject([
      { type: 'connection-closed', connection: 1, ...end, by: 'service' },
      { type: 'handshake-refused', code: 'ticket-unknown' },
      { type: 'ticket-issued' },
      { type: 'handshake-accepted', connection: 2 },
    ]);
  });

  it('keeps sources, capacity and the endpoints, and ends a stall', async () => {
    const payloads = new Subject<string>();
    const { service, key } = await withKey(start({ sources: { market: payloads } }));
    service.setCapacity(0);
    service.setTicketEndpoint({ status: 500 });
    service.stall();
    await service.restart();
    expect((await postTicket(service, key)).status).toBe(500);
    service.setTicketEndpoint('normal');
    expect(errorCode(await refusedHandshake(await takeTicket(service, key)))).toBe('capacity-full');
    service.setCapacity(1);
    const { first } = await connectAs(service, key);
    payloads.next('from the source');
    expect(await first(1)).toEqual(['from the source']);
  });

  it('refuses connections in between, runs one restart at a time, and shuts down last', async () => {
    const service = await start();
    const { ws } = await connectNew(service);
    // A client that doesn't answer holds up the first restart.
    ws.pause();
    const first = service.restart();
    await expect(postTicket(service, 'any-key')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const second = service.restart({ connections: 'drop' });
    const stopped = service.shutdown();
    expect(service.shutdown()).toBe(stopped);
    ws.terminate();
    await Promise.all([first, second, stopped]);
    await expect(postTicket(service, 'any-key')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(service.restart()).rejects.toThrow(
      "The service was shut down, so it can't restart. Start another one.",
    );
  });

  it('rejects if another program has taken the port, and the next restart succeeds', async () => {
    const service = await start();
    const { ws } = await connectNew(service);
    ws.pause();
    const restarted = service.restart();
    // The port is free while the service waits for its client.
    const other = await begin({ port: portOf(service.baseUrl) });
    ws.terminate();
    await expect(restarted).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await other.shutdown();
    await service.restart();
    await connectNew(service);
  });

  it('refuses connections for downMs, and comes back with the same keys', async () => {
    using _timers = fakeTimers();
    const { service, key } = await withKey(start());
    const socket = await connectAs(service, key);
    const isBack = jest.fn();
    void service.restart({ downMs: 3_000 }).then(isBack);
    expect(await socket.closed).toEqual({ code: 1001, reason: 'server shutdown' });
    await waitFor(async () => (await postTicket(service, 'any-key').then(String, String)).includes('ECONNREFUSED'));
    let passedMs = 0;
    await waitFor(() => {
      if (isBack.mock.calls.length > 0) return true;
      jest.advanceTimersByTime(100);
      passedMs += 100;
      return false;
    });
    expect(passedMs).toBeGreaterThanOrEqual(3_000);
    await connectAs(service, key);
  });

  it('does not come back if the service is shut down in between', async () => {
    const service = await start();
    const restarted = service.restart({ downMs: 3_600_000 });
    await Promise.all([service.shutdown(), expect(restarted).rejects.toThrow('The service was shut down')]);
    await expect(postTicket(service, 'any-key')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('keeps nothing running after unref', async () => {
    const service = await start();
    service.unref();
    await service.restart();
    expect(process.getActiveResourcesInfo().filter((name) => name === 'TCPServerWrap')).toEqual([]);
  });
});

describe('with a mocked Date, long ago', () => {
  const now = Date.parse('2001-02-03T04:05:06.789Z');
  // Mocks only `Date`, as users do in tests of dates. Timers stay real.
  const real = [
    ...(['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const),
    ...(['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] as const),
  ];
  beforeEach(() => void jest.useFakeTimers({ now, doNotFake: real }));
  afterEach(() => void jest.useRealTimers());

  it('tickets are valid for a minute, and each answer has the Date of the test', async () => {
    const { service, key } = await withKey(start());
    const granted = await postTicket(service, key);
    const ticket = granted.body as WireTicket;
    expect(Date.parse(ticket.expires_at)).toBe(now + 60_000);
    service.revokeTicket(ticket.ticket);
    const refused = [await postTicket(service, 'wrong'), await refusedHandshake(ticket)];
    expect(refused.map(({ status }) => status)).toEqual([401, 401]);
    for (const { headers } of [granted, ...refused]) expect(headers['date']).toBe(new Date(now).toUTCString());
  });

  it.each(['main', 'worker'] as const)('sends frames to a client in %s, also after a reconnect', async (receiveIn) => {
    const service = await start();
    const account = service.createAccount();
    service.events$.subscribe(({ type }) => type === 'handshake-accepted' && service.push('market', 'a frame'));
    let frames = 0;
    const options = { ...optionsFor(service, { receiveIn }), apiKey: account.createApiKey() };
    const events = await until(tradeFeedEvents$('market', options), ({ type }) => {
      if (type === 'frame' && (frames += 1) === 1) account.expireAccess();
      return frames === 2;
    });
    const expiresAt = new Date(now + 60_000).toISOString();
    expect(events.filter(({ type }) => type === 'disconnected' || type === 'ticket-issued')).toMatchObject([
      { expiresAt },
      { failure: { code: 'access-expired' } },
      { expiresAt },
    ]);
  });
});
