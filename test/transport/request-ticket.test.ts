import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer as createTcp, type Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, from, of, toArray } from 'rxjs';
import { Agent, interceptors } from 'undici';
import { type Feed, requestTicket, createTradeFeedError, type Verdict } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { closed, optionsFor, plantedKey } from '../support/feed.js';
import { issue, refuse, startWire, ticketBody, type TicketStep } from '../support/wire.js';

const market: Feed = 'market';
const day = 'Mon, 01 Jan 2001 00:00:00 GMT';

/** Writes one byte at a time, forever, with a pause in between. */
const drip =
  (head: boolean): TicketStep =>
  (response) => {
    const { socket } = response;
    if (head) socket?.write('HTTP/1.1 200 OK\r\nx-filler: ');
    else response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => (head ? socket : response)?.write(' '), 2);
    socket?.on('close', () => clearInterval(timer));
  };

describe('requestTicket', () => {
  it('posts the feed with the key in X-API-Key and nowhere else', async () => {
    await using wire = await startWire();

    const ticket = await firstValueFrom(of<Feed>('raw').pipe(requestTicket(optionsFor(wire))));

    expect(wire.tickets).toMatchObject([{ method: 'POST', url: '/v1/wss/tickets', body: '{"feed":"raw"}' }]);
    expect(wire.tickets[0]?.headers).toMatchObject({
      'x-api-key': plantedKey,
      'content-type': 'application/json',
      accept: 'application/json',
      'accept-encoding': 'identity',
    });
    expect(wire.tickets[0]?.headers.authorization).toBeUndefined();
    expect(ticket).toMatchObject({ token_type: 'Bearer', wss_url: wire.wssUrl, feed: 'market' });
    expect(ticket.ticket.reveal()).toBe('planted-ticket-1');
  });

  it.each<[string, string]>([
    ['/', '/v1/wss/tickets'],
    ['/a/b', '/a/b/v1/wss/tickets'],
    ['/a/b///', '/a/b/v1/wss/tickets'],
  ])('keeps a path in the base address: %s', async (path, url) => {
    await using wire = await startWire();
    await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { baseUrl: wire.baseUrl + path }))));
    expect(wire.tickets[0]?.url).toBe(url);
  });

  it('requests a separate ticket for each feed, in order', async () => {
    await using wire = await startWire();
    const feeds: Feed[] = ['market', 'raw', 'market'];
    const tickets = await firstValueFrom(from(feeds).pipe(requestTicket(optionsFor(wire)), toArray()));
    expect(tickets.map(({ ticket }) => ticket.reveal())).toEqual([
      'planted-ticket-1',
      'planted-ticket-2',
      'planted-ticket-3',
    ]);
    expect(wire.tickets.map(({ body }) => body)).toEqual(['{"feed":"market"}', '{"feed":"raw"}', '{"feed":"market"}']);
  });

  it('calls an async key function before every ticket', async () => {
    await using wire = await startWire();
    let n = 0;
    const apiKey = () => Promise.resolve(`key-${(n += 1)}`);
    const request = requestTicket(optionsFor(wire, { apiKey }));
    await of(market, market)
      .pipe(request)
      .forEach(() => undefined);
    expect(wire.tickets.map(({ headers }) => headers['x-api-key'])).toEqual(['key-1', 'key-2']);
  });

  it('requests no ticket for an unknown feed', async () => {
    await using wire = await startWire();
    const request$ = of('candles' as Feed).pipe(requestTicket(optionsFor(wire)));
    await expect(firstValueFrom(request$)).rejects.toMatchObject({ code: 'invalid-options' });
    expect(wire.connections).toBe(0);
  });

  it('computes the lifetime as expires_at minus Date, on the monotonic clock, whatever the local clock shows', async () => {
    await using wire = await startWire({ ticket: [issue({ expires_at: '2001-01-01T00:00:42.5Z' }, { date: day })] });
    const before = performance.now();
    const { deadlineMs } = await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))));
    expect(deadlineMs).toBeGreaterThanOrEqual(before + 42_500);
    expect(deadlineMs).toBeLessThanOrEqual(performance.now() + 42_500);
  });

  it('measures the lifetime from the request, also if the answer is late', async () => {
    const late: TicketStep = (response, wire, n) =>
      void setTimeout(() => issue({ expires_at: '2001-01-01T00:00:42Z' }, { date: day })(response, wire, n), 150);
    await using wire = await startWire({ ticket: [late] });
    const before = performance.now();
    const { deadlineMs } = await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))));
    expect((deadlineMs ?? 0) - before).toBeLessThan(42_100);
  });

  it('sets no deadline if the response has no valid Date', async () => {
    await using wire = await startWire({ ticket: [issue({}, { date: 'yesterday' })] });
    const ticket = await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))));
    expect(ticket.deadlineMs).toBeUndefined();
  });

  it.each([
    ['head', true],
    ['body', false],
  ])('keeps its absolute deadline while the %s arrives byte by byte', async (_part, head) => {
    await using wire = await startWire({ ticket: [drip(head)] });
    const started = performance.now();
    await expect(
      firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { ticketTimeoutMs: 60 })))),
    ).rejects.toMatchObject({
      code: 'ticket-endpoint-unreachable',
      message: expect.stringContaining('no answer in 60 ms'),
    });
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it('reports the status of a refusal whose body never ends', async () => {
    const endless: TicketStep = (response) => void response.writeHead(401).write('x');
    await using wire = await startWire({ ticket: [endless] });
    await expect(
      firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { ticketTimeoutMs: 50 })))),
    ).rejects.toMatchObject({ code: 'invalid-api-key', status: 401 });
  });

  it('reports the status of a refusal if the connection breaks in its body', async () => {
    const broken: TicketStep = (response) =>
      void response.writeHead(403, { 'content-length': '99' }).write('x', () => response.socket?.destroy());
    await using wire = await startWire({ ticket: [broken] });
    await expect(firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))))).rejects.toMatchObject({
      code: 'not-entitled',
    });
  });

  it('leaves no connection open', async () => {
    await using wire = await startWire({ ticket: [issue(), refuse(500, {}, 'x'.repeat(300_000))] });
    await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))));
    await firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire)))).catch(() => undefined);
    await Promise.all([...wire.open].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
    expect(wire.connections).toBe(2);
  });

  it("reads the body of a refusal, so that a user's dispatcher can reuse the connection", async () => {
    await using wire = await startWire({ ticket: [refuse(500, {}, 'x'.repeat(5_000)), refuse(503), issue()] });
    const dispatcher = new Agent({ connections: 1 });
    const request = () => firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { dispatcher }))));
    await expect(request()).rejects.toMatchObject({ status: 500 });
    await expect(request()).rejects.toMatchObject({ status: 503 });
    await expect(request()).resolves.toMatchObject({ feed: 'market' });
    expect(wire.connections).toBe(1);
    await dispatcher.close();
  });

  it("ends the request of a user's dispatcher when it is unsubscribed", async () => {
    await using wire = await startWire({ ticket: [() => undefined] });
    const dispatcher = new Agent();
    const subscription = of(market)
      .pipe(requestTicket(optionsFor(wire, { dispatcher })))
      .subscribe();
    while (wire.tickets.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const [socket] = wire.open;
    subscription.unsubscribe();
    await closed(socket as Socket);
    expect(wire.tickets).toHaveLength(1);
    await dispatcher.close();
  });

  it('reads a body of exactly the allowed size', async () => {
    const full: TicketStep = (response, wire, n) => {
      void response.writeHead(200).end(JSON.stringify(ticketBody(wire, n)).padEnd(64 * 1024));
    };
    await using wire = await startWire({ ticket: [full] });
    await expect(firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))))).resolves.toMatchObject({
      feed: 'market',
    });
  });

  it('reads at most the allowed size of a body', async () => {
    const padded: TicketStep = (response, wire, n) =>
      void response.writeHead(200).end(JSON.stringify(ticketBody(wire, n)) + ' '.repeat(70_000));
    await using wire = await startWire({ ticket: [padded] });
    await expect(firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))))).rejects.toMatchObject({
      code: 'invalid-ticket',
      message: expect.stringContaining('the body is longer than 65536 bytes'),
    });
  });

  it("follows no redirect, even if a user's dispatcher would", async () => {
    await using elsewhere = await startWire();
    await using wire = await startWire({ ticket: [refuse(307, { location: `${elsewhere.baseUrl}/v1/wss/tickets` })] });
    const dispatcher = new Agent().compose(interceptors.redirect({ maxRedirections: 5 }));
    await expect(
      firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { dispatcher })))),
    ).rejects.toMatchObject({ code: 'ticket-request-rejected', status: 307 });
    expect(elsewhere.connections).toBe(0);
    await dispatcher.destroy();
  });

  it('accepts a private CA from the options', async () => {
    const certificate = await certificateFor();
    await using wire = await startWire({ tls: certificate });
    const ticket = await firstValueFrom(
      of(market).pipe(requestTicket(optionsFor(wire, { tls: { ca: certificate.cert } }))),
    );
    expect(ticket.wss_url).toBe(wire.wssUrl);
  });

  it('reports a TLS error in the same turn as the end of the TLS handshake', async () => {
    const certificate = await certificateFor();
    await using wire = await startWire({ tls: certificate });
    const brokenRecord = Buffer.from([0x17, 3, 3, 0, 30, ...Buffer.alloc(30, 7)]);
    const proxy = createTcp((client) => {
      const server = connectTcp(Number(new URL(wire.baseUrl).port), '127.0.0.1');
      client.on('error', () => server.destroy()).on('close', () => server.destroy());
      client.on('data', (bytes) => server.write(bytes));
      server.on('error', () => client.destroy());
      server.once('data', (flight) => client.write(Buffer.concat([flight, brokenRecord])));
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const options = optionsFor({ baseUrl: `https://127.0.0.1:${port}` }, { tls: { ca: certificate.cert } });
    const started = performance.now();
    await expect(firstValueFrom(of(market).pipe(requestTicket(options)))).rejects.toMatchObject({
      code: 'ticket-endpoint-unreachable',
      cause: { code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' },
    });
    expect(performance.now() - started).toBeLessThan(5_000);
    proxy.close();
  });

  it('names the invalid fields, without their values', async () => {
    await using wire = await startWire({ ticket: [issue({ expires_at: 'planted-a', wss_url: 'planted-b' })] });
    await expect(firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire))))).rejects.toMatchObject({
      code: 'invalid-ticket',
      message: expect.stringMatching(/^(?!.*planted).*\(wrong or missing: expires_at, wss_url\)/),
    });
  });

  it('uses the verdict of the option `classify`, and stops with an exception of it', async () => {
    await using wire = await startWire({ ticket: [refuse(401)] });
    const with401 = (classify: () => Verdict) =>
      firstValueFrom(of(market).pipe(requestTicket(optionsFor(wire, { classify }))));
    await expect(with401(() => 'backoff')).rejects.toMatchObject({
      code: 'invalid-api-key',
      verdict: 'backoff',
    });
    const thrown = new Error('mine');
    await expect(
      with401(() => {
        throw thrown;
      }),
    ).rejects.toBe(thrown);
    await expect(with401(() => 'sometimes' as Verdict)).rejects.toMatchObject({ code: 'invalid-options' });
    expect(createTradeFeedError({ stage: 'ticket', status: 401 }).verdict).toBe('stop');
  });
});
