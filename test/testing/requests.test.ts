import { describe, expect, it } from '@jest/globals';
import type { TradeFeedService, TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import type { WireTicket } from '../../src/protocol/contract.js';
import {
  connectAs,
  connectTo,
  errorCode,
  handshakeLines,
  type HandshakeOptions,
  nextEvent,
  openSocket,
  postTicket,
  recordEvents,
  refusalOf,
  refusedHandshake,
  send,
  sendRaw,
  takeTicket,
} from './bare-client.js';
import { manualClock, serviceFactory, withKey } from './service-under-test.js';

const start = serviceFactory();

it.each<[string, object | undefined, string, string]>([
  ['the market feed if the request has no body', undefined, 'market', 'mmp.trade-batch.v1'],
  ['the market feed if the body names none', {}, 'market', 'mmp.trade-batch.v1'],
  ['the market feed', { feed: 'market' }, 'market', 'mmp.trade-batch.v1'],
  ['the raw feed', { feed: 'raw' }, 'raw', 'mmp.pending-transaction.v1'],
])('a ticket (contract 2.1, 4.1) is for %s', async (_, request, feed, subprotocol) => {
  const { service, key } = await withKey(start());
  const before = Date.now();
  const { status, headers, body } = await postTicket(service, key, request);
  const after = Date.now();
  expect(status).toBe(200);
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
  expect(body).toEqual({
    ticket: expect.stringMatching(/^ticket_[\w-]{32}$/),
    token_type: 'Bearer',
    expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    wss_url: `${service.baseUrl.replace('http', 'ws')}/ws`,
    feed,
    subprotocol,
  });
  const expiresAt = Date.parse((body as WireTicket).expires_at);
  expect(expiresAt).toBeGreaterThanOrEqual(before + 60_000);
  expect(expiresAt).toBeLessThanOrEqual(after + 60_000);
  // The header counts whole seconds, and Node reuses it for up to a second.
  const date = Date.parse(String(headers['date']));
  expect(date).toBeGreaterThan(before - 2_000);
  expect(date).toBeLessThanOrEqual(after);
});

it('a ticket gets its subprotocol and lifetime from the options', async () => {
  const { service, key } = await withKey(
    start({ subprotocols: { raw: 'mine.v9' }, limits: { ticketLifetimeMs: 5_000 } }),
  );
  const raw = await takeTicket(service, key, 'raw');
  expect(raw.subprotocol).toBe('mine.v9');
  expect(Date.parse(raw.expires_at) - Date.now()).toBeLessThanOrEqual(5_000);
});

describe('a ticket request gets 401 (contract 4.1 rule 1, 5, 7.1)', () => {
  type Place = (key: string, ticket: string) => { path?: string; headers?: Record<string, string | string[]> };
  const places: [string, Place][] = [
    ['missing', () => ({})],
    ['empty', () => ({ headers: { 'X-API-Key': '' } })],
    ['unknown', () => ({ headers: { 'X-API-Key': 'key_0' } })],
    ['in another case', (key) => ({ headers: { 'X-API-Key': key.toUpperCase() } })],
    ['sent twice', (key) => ({ headers: { 'X-API-Key': [key, key] } })],
    ['in the query', (key) => ({ path: `?api_key=${key}&X-API-Key=${key}` })],
    ['in Authorization', (key) => ({ headers: { Authorization: `Bearer ${key}` } })],
    ['in another header', (key) => ({ headers: { 'Api-Key': key, Cookie: `X-API-Key=${key}` } })],
    ['a ticket', (_, ticket) => ({ headers: { 'X-API-Key': ticket } })],
  ];

  it.each(places)('if the API key is %s', async (_, place) => {
    const { service, key } = await withKey(start());
    const { ticket } = await takeTicket(service, key);
    const { path = '', headers = {} } = place(key, ticket);
    const answer = await send(`${service.baseUrl}/v1/wss/tickets${path}`, { method: 'POST', headers });
    expect(refusalOf(answer)).toEqual([401, 'invalid-api-key']);
    expect(answer.headers['www-authenticate']).toBe('ApiKey');
  });
});

it.each([
  ['inactive', { active: false }, 'account-inactive'],
  ['not entitled', { entitled: false }, 'not-entitled'],
  ['revoked', {}, 'not-entitled'],
])(
  'a request gets 403 (contract 5, 7.1) if the account is %s, until it is restored, and is not counted',
  async (what, options, code) => {
    const service = await start({ limits: { ticketsPerWindow: 1 } });
    const account = service.createAccount(options);
    if (what === 'revoked') account.revokeAccess();
    const key = account.createApiKey();
    expect(refusalOf(await postTicket(service, key))).toEqual([403, code]);
    account.restoreAccess();
    expect((await postTicket(service, key)).status).toBe(200);
  },
);

it.each([
  ['{"feed":', 'invalid-body'],
  ['[]', 'invalid-body'],
  ['"raw"', 'invalid-body'],
  ['{"feed":"candles"}', 'unknown-feed'],
  ['{"feed":null}', 'unknown-feed'],
])('a ticket request gets 422 (contract 2.2, 7.1) for the body %s', async (body, code) => {
  const service = await start();
  expect(refusalOf(await postTicket(service, service.createAccount().createApiKey(), body))).toEqual([422, code]);
});

it.each<[string, string, string, (key: string) => { path?: string; headers?: Record<string, string> }]>([
  ['its key also in the query', 'credential-in-url', 'market', (key) => ({ path: `?k=${key.replace('_', '%5F')}` })],
  ['another content type', 'content-type', 'raw', () => ({ headers: { 'Content-Type': 'text/plain' } })],
])('a ticket request with %s is granted, but reported as the violation %s', async (_, rule, feed, changes) => {
  const { service, key } = await withKey(start());
  const violation = nextEvent(service, 'violation');
  const { path = '', headers = { 'Content-Type': 'application/json' } } = changes(key);
  const answer = await send(`${service.baseUrl}/v1/wss/tickets${path}`, {
    method: 'POST',
    headers: { 'X-API-Key': key, ...headers },
    body: JSON.stringify({ feed }),
  });
  expect(answer).toMatchObject({ status: 200, body: { feed } });
  expect(await violation).toMatchObject({ rule });
});

describe('the fixed window of ticket requests (contract 7.1, 8)', () => {
  it('answers 429 with the remaining seconds in Retry-After, and ends after them', async () => {
    const { scheduler, advance } = manualClock();
    const { service, key } = await withKey(start({ scheduler, limits: { ticketsPerWindow: 2, windowMs: 30_000 } }));
    const ask = async () => {
      const { status, headers } = await postTicket(service, key);
      return [status, headers['retry-after']];
    };
    expect(await ask()).toEqual([200, undefined]);
    advance(10_000);
    expect(await ask()).toEqual([200, undefined]);
    expect(await ask()).toEqual([429, '20']);
    advance(19_999);
    expect(await ask()).toEqual([429, '1']);
    advance(1);
    expect(await ask()).toEqual([200, undefined]);
  });

  it('covers all keys of an account, including requests with an invalid body, but no other account', async () => {
    const service = await start({ limits: { ticketsPerWindow: 2 } });
    const account = service.createAccount();
    expect((await postTicket(service, account.createApiKey())).status).toBe(200);
    expect((await postTicket(service, account.createApiKey(), '{')).status).toBe(422);
    expect((await postTicket(service, account.createApiKey())).status).toBe(429);
    expect((await postTicket(service, service.createAccount().createApiKey())).status).toBe(200);
  });
});

it('a failing credential service (contract 7.1) refuses every key with 503, even an invalid one, until it works again, and counts none of that', async () => {
  const { service, key } = await withKey(start({ limits: { ticketsPerWindow: 1 } }));
  service.failCredentials(true);
  for (const sent of [key, 'key_0', undefined]) {
    expect(refusalOf(await postTicket(service, sent))).toEqual([503, 'credential-service-unavailable']);
  }
  service.failCredentials(false);
  expect((await postTicket(service, key)).status).toBe(200);
});

describe('the limits of a ticket request', () => {
  it('answer 413 to a body beyond limits.requestBytes, and end the connection', async () => {
    const { service, key } = await withKey(start({ limits: { requestBytes: 100 } }));
    const padded = (length: number) => `{}${' '.repeat(length - 2)}`;
    expect((await postTicket(service, key, padded(100))).status).toBe(200);
    const answer = await postTicket(service, key, padded(300_000));
    expect([...refusalOf(answer), answer.headers['connection']]).toEqual([413, 'request-too-large', 'close']);
  });

  it('answer 408 to a body that takes longer than limits.requestTimeoutMs', async () => {
    const service = await start({ limits: { requestTimeoutMs: 50 } });
    const answer = await sendRaw(
      service,
      'POST /v1/wss/tickets HTTP/1.1',
      'Host: localhost',
      `X-API-Key: ${service.createAccount().createApiKey()}`,
      'Content-Type: application/json',
      'Content-Length: 100',
      '',
      '{"feed":',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  });
});

describe('the events and bodies of ticket requests', () => {
  it('report each grant and refusal, with the account and without a secret', async () => {
    const service = await start({ limits: { ticketsPerWindow: 2 } });
    const events = recordEvents(service);
    const key = service.createAccount().createApiKey();
    const { expires_at: expiresAt } = await takeTicket(service, key, 'raw');
    await postTicket(service, key, '{');
    await postTicket(service, key);
    await postTicket(service);
    expect(events).toEqual([
      { at: expect.any(Number), type: 'ticket-issued', account: 'account-1', feed: 'raw', expiresAt },
      expect.objectContaining({ type: 'ticket-refused', status: 422, code: 'invalid-body', account: 'account-1' }),
      expect.objectContaining({ status: 429, code: 'rate-limited', account: 'account-1', retryAfterSeconds: 60 }),
      expect.objectContaining({ status: 401, code: 'invalid-api-key', account: undefined }),
    ]);
  });

  const throwing = (): never => {
    throw new Error('mine');
  };
  const thrown = { error: { code: 'invalid-api-key', message: 'The option errorBody threw an error: Error: mine' } };
  it.each<[string, NonNullable<TradeFeedServiceOptions['errorBody']>, unknown]>([
    ['that errorBody returns', ({ status, code }) => ({ status, why: code }), { status: 401, why: 'invalid-api-key' }],
    ['of none, if errorBody returns undefined', () => undefined, undefined],
    ['of the default, if errorBody throws', throwing, thrown],
  ])('have the error body %s', async (_, errorBody, body) => {
    expect(await postTicket(await start({ errorBody }))).toMatchObject({ status: 401, body });
  });
});

const newTicket = async (feed?: string, service?: TradeFeedService) => {
  const running = service ?? (await start());
  const account = running.createAccount();
  const key = account.createApiKey();
  return { service: running, account, key, ticket: await takeTicket(running, key, feed) };
};

describe('a valid handshake (contract 4.2, 7.2)', () => {
  it.each([
    ['market', 'Bearer '],
    ['raw', 'bearer  '],
  ])('opens the %s feed with its subprotocol and no extension, also with the scheme "%s"', async (feed, scheme) => {
    const { ticket } = await newTicket(feed);
    const { ws } = await openSocket(ticket, { headers: { Authorization: scheme + ticket.ticket } });
    expect([ws.protocol, ws.extensions]).toEqual([ticket.subprotocol, '']);
  });

  it('gets payloads as soon as its acceptance is reported, without a subscribe message', async () => {
    const { service, ticket } = await newTicket();
    const accepted = nextEvent(service, 'handshake-accepted');
    const opened = openSocket(ticket);
    expect(await accepted).toMatchObject({ account: 'account-1', feed: 'market', connection: 1 });
    service.createAccount();
    service.push('market', 'first');
    expect((await opened).messages).toEqual([]);
  });

  it.each<[string, string, (ticket: string, key: string) => HandshakeOptions]>([
    ['without a subprotocol', 'no-subprotocol', () => ({ protocols: [] })],
    [
      'with an API key',
      'api-key-in-handshake',
      (ticket, key) => ({ headers: { Authorization: `Bearer ${ticket}`, 'X-API-Key': key } }),
    ],
  ])('%s is accepted, but reported as the violation %s', async (_, rule, options) => {
    const { service, ticket, key } = await newTicket();
    const violation = nextEvent(service, 'violation');
    const { ws } = await openSocket(ticket, options(ticket.ticket, key));
    expect(ws.protocol).toBe(rule === 'no-subprotocol' ? '' : ticket.subprotocol);
    const seen = rule === 'no-subprotocol' && { account: 'account-1', feed: 'market' };
    expect(await violation).toMatchObject({ rule, ...seen });
  });
});

describe('a handshake gets 401 (contract 3.1, 5, 7.2)', () => {
  type Place = (ticket: string, key: string) => HandshakeOptions & { query?: string };
  const places: [string, string, Place][] = [
    ['missing', 'ticket-missing', () => ({ headers: {} })],
    ['in the query', 'ticket-missing', (ticket) => ({ headers: {}, query: `?ticket=${ticket}` })],
    ['without a scheme', 'ticket-missing', (ticket) => ({ headers: { Authorization: ticket } })],
    ['with the scheme Basic', 'ticket-missing', (ticket) => ({ headers: { Authorization: `Basic ${ticket}` } })],
    ['empty', 'ticket-missing', () => ({ headers: { Authorization: 'Bearer ' } })],
    ['in another header', 'ticket-missing', (ticket) => ({ headers: { 'X-API-Key': ticket, Cookie: `t=${ticket}` } })],
    ['unknown', 'ticket-unknown', () => ({ headers: { Authorization: 'Bearer ticket_0' } })],
    ['an API key as Bearer', 'ticket-unknown', (_, key) => ({ headers: { Authorization: `Bearer ${key}` } })],
  ];
  it.each(places)('if the ticket is %s (%s), and the ticket stays valid', async (_, code, place) => {
    const { ticket, key } = await newTicket();
    const { query = '', ...options } = place(ticket.ticket, key);
    const answer = await refusedHandshake(ticket, { ...options, url: ticket.wss_url + query });
    expect([...refusalOf(answer), answer.headers['www-authenticate']]).toEqual([401, code, 'Bearer']);
    expect(answer.headers).toMatchObject({ connection: 'close', 'content-type': 'application/json' });
    expect(Math.abs(Date.parse(String(answer.headers['date'])) - Date.now())).toBeLessThan(60_000);
    await openSocket(ticket);
  });

  it('if the ticket is already used, both while its connection is open and afterwards', async () => {
    const { ticket, service } = await newTicket();
    const { ws } = await openSocket(ticket);
    expect(errorCode(await refusedHandshake(ticket))).toBe('ticket-consumed');
    const closed = nextEvent(service, 'connection-closed');
    ws.terminate();
    await closed;
    expect(refusalOf(await refusedHandshake(ticket))).toEqual([401, 'ticket-consumed']);
  });

  it('if another handshake uses the same ticket at the same time', async () => {
    const { ticket, service } = await newTicket();
    const events = recordEvents(service);
    await Promise.allSettled([openSocket(ticket), openSocket(ticket)]);
    expect(events.map(({ type }) => type).sort()).toEqual(['handshake-accepted', 'handshake-refused']);
  });

  it.each([
    [59_999, 'accepted'],
    [60_000, 'ticket-expired'],
  ])('after %d ms only if the ticket has expired: %s', async (ms, expected) => {
    const { scheduler, advance } = manualClock();
    const { ticket } = await newTicket('market', await start({ scheduler }));
    advance(ms);
    if (expected === 'accepted') await openSocket(ticket);
    else expect(refusalOf(await refusedHandshake(ticket))).toEqual([401, expected]);
  });

  it('as unknown one lifetime after the ticket has expired, because the service forgets it with the next ticket', async () => {
    const { scheduler, advance } = manualClock();
    const { service, key, ticket } = await newTicket('market', await start({ scheduler }));
    advance(119_999);
    await takeTicket(service, key);
    expect(errorCode(await refusedHandshake(ticket))).toBe('ticket-expired');
    advance(1);
    await takeTicket(service, key);
    expect(errorCode(await refusedHandshake(ticket))).toBe('ticket-unknown');
  });

  it('if the ticket was revoked, which is reported once', async () => {
    const { service, ticket } = await newTicket('raw');
    const events = recordEvents(service);
    expect(service.revokeTicket(ticket.ticket)).toBe(true);
    expect(service.revokeTicket(ticket.ticket)).toBe(false);
    expect(service.revokeTicket('ticket_0')).toBe(false);
    expect(refusalOf(await refusedHandshake(ticket))).toEqual([401, 'ticket-revoked']);
    expect(events).toMatchObject([
      { type: 'ticket-revoked', account: 'account-1', feed: 'raw' },
      { type: 'handshake-refused', status: 401, code: 'ticket-revoked', account: 'account-1', feed: 'raw' },
    ]);
  });

  it('if the ticket was issued before its account lost access', async () => {
    const { account, ticket } = await newTicket();
    account.revokeAccess();
    account.restoreAccess();
    expect(errorCode(await refusedHandshake(ticket))).toBe('ticket-revoked');
  });
});

describe('a handshake gets 400 (contract 7.2)', () => {
  const mismatch = 'subprotocol-mismatch';
  it.each<[string, string, (ticket: WireTicket) => HandshakeOptions]>([
    ['the subprotocol of raw', mismatch, () => ({ protocols: ['mmp.pending-transaction.v1'] })],
    ['a second subprotocol', mismatch, ({ subprotocol }) => ({ protocols: [subprotocol, 'graphql-ws'] })],
    ['feed=raw added to the address', 'address-mismatch', ({ wss_url }) => ({ url: `${wss_url}?feed=raw` })],
  ])('and uses up a market ticket with %s: %s', async (_, code, options) => {
    const { ticket } = await newTicket();
    expect(refusalOf(await refusedHandshake(ticket, options(ticket)))).toEqual([400, code]);
    expect(refusalOf(await refusedHandshake(ticket))).toEqual([401, 'ticket-consumed']);
  });

  it('for an empty subprotocol header', async () => {
    const { service, ticket } = await newTicket();
    const answer = await sendRaw(service, ...handshakeLines(ticket.ticket, { 'Sec-WebSocket-Protocol': '' }));
    expect(answer).toMatch(/^HTTP\/1\.1 400 [^]*subprotocol-mismatch/);
  });
});

it('the capacity (contract 7.2) is free again when a user leaves or when it grows, and a connection needs none in place of its own', async () => {
  const service = await start({ limits: { capacity: 1, freeDelayMs: 0 } });
  const [one, two] = [service.createAccount().createApiKey(), service.createAccount().createApiKey()];
  const { ws, first } = await connectAs(service, one);
  const ticket = await takeTicket(service, two);
  expect(refusalOf(await refusedHandshake(ticket))).toEqual([503, 'capacity-full']);
  expect(errorCode(await refusedHandshake(ticket))).toBe('ticket-consumed');
  // The refused user doesn't affect the connected one.
  service.push('market', 'still here');
  expect(await first(1)).toEqual(['still here']);
  const left = nextEvent(service, 'connection-closed');
  ws.close();
  await left;
  await connectAs(service, two);
  expect((await refusedHandshake(await takeTicket(service, one))).status).toBe(503);
  service.setCapacity(2);
  const old = await connectAs(service, one);
  service.setCapacity(0);
  await connectAs(service, one, 'raw');
  expect((await old.closed).code).toBe(4001);
});

it('a refused handshake (contract 3.2), or a client that disconnects meanwhile, does not affect the connection of the user', async () => {
  const { service, key } = await withKey(start({ limits: { freeDelayMs: 0 } }));
  const live = await connectAs(service, key);
  for (let tried = 0; tried < 20; tried += 1) {
    const refused = nextEvent(service, 'handshake-refused');
    const socket = connectTo(service);
    socket.write([...handshakeLines('ticket_0'), '', ''].join('\r\n'), () => socket.resetAndDestroy());
    await refused;
  }
  const used = await takeTicket(service, key);
  await refusedHandshake(used, { protocols: ['graphql-ws'] });
  await refusedHandshake(used);
  await refusedHandshake(used, { headers: {} });
  service.push('market', 'still here');
  expect(await live.first(1)).toEqual(['still here']);
  expect(live.ws.readyState).toBe(live.ws.OPEN);
});

describe('a request that is not a WebSocket handshake (RFC 6455 4.2)', () => {
  const version = /^sec-websocket-version: 13\r$/im;
  const anyHead = /^date: /im;
  const rows: [string, number, Record<string, string | undefined>, string, RegExp][] = [
    ['no key', 400, { 'Sec-WebSocket-Key': undefined }, 'GET /ws', anyHead],
    ['a short key', 400, { 'Sec-WebSocket-Key': 'abc' }, 'GET /ws', anyHead],
    ['another protocol', 400, { Upgrade: 'h2c' }, 'GET /ws', anyHead],
    ['an old version', 426, { 'Sec-WebSocket-Version': '8' }, 'GET /ws', version],
    ['another method', 405, {}, 'PUT /ws', /^allow: GET\r$/im],
    ['another path', 404, {}, 'GET /stream', anyHead],
    ['the ticket endpoint, POST', 400, {}, 'POST /v1/wss/tickets', anyHead],
  ];
  it.each(rows)('reserves no ticket: %s gets %d', async (_, status, changes, target, head) => {
    const { service, ticket } = await newTicket();
    const refused = nextEvent(service, 'handshake-refused');
    const answer = await sendRaw(service, ...handshakeLines(ticket.ticket, changes, target));
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(head);
    expect(await refused).toMatchObject({ status, account: undefined });
    await openSocket(ticket);
  });
});
