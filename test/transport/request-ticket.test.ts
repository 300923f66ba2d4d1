/** @lane clock */
import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { connect as connectTcp, createServer as createTcp } from 'node:net';
import { Duplex } from 'node:stream';
import { firstValueFrom, noop, of, take, toArray, VirtualTimeScheduler } from 'rxjs';
import { Agent } from 'undici';
import { resolveTicketOptions } from '../../src/feed/options.js';
import {
  type Feed,
  type FeedEvent,
  proxyFromEnvironment,
  requestTicket,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { withoutInterimResponses } from '../../src/transport/interim-responses.js';
import { apiKey$ } from '../../src/transport/request-ticket.js';
import { cases } from '../support/cases.js';
import { fakeTimers } from '../support/fake-timers.js';
import { closed, optionsFor, plantedKey, until } from '../support/feed.js';
import { portOf } from '../support/gate.js';
import { listen } from '../support/listen.js';
import {
  ca,
  dropped,
  expired,
  failuresOf,
  frames,
  opened,
  stable,
  startTwoOrigins,
  tls,
  transports,
  turns,
} from '../support/two-origins.js';
import { waitFor } from '../support/wait-for.js';
import {
  accept,
  close,
  issue,
  refuse,
  startWire,
  text,
  ticketBody,
  type TicketStep,
  type Wire,
  type WireScript,
} from '../support/wire.js';

const day = 'Mon, 01 Jan 2001 00:00:00 GMT';

/** Requests one ticket. */
const ask = (wire: Wire, options?: TradeFeedOptions, feed: Feed = 'market') =>
  firstValueFrom(of(feed).pipe(requestTicket(optionsFor(wire, options))));

/** Writes byte after byte, forever, with pauses in between. */
const drip =
  (head: boolean): TicketStep =>
  (response) => {
    const { socket } = response;
    if (head) socket?.write('HTTP/1.1 200 OK\r\nx-filler: ');
    else response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => (head ? socket : response)?.write(' '), 2);
    socket?.on('close', () => clearInterval(timer));
  };
/** Issues a ticket with a body of this size. */
const padded =
  (bytes: number): TicketStep =>
  (response, wire, n) =>
    void response.writeHead(200).end(JSON.stringify(ticketBody(wire, n)).padEnd(bytes));

describe('requestTicket', () => {
  it('posts the feed with the key in X-API-Key and nowhere else', async () => {
    await using wire = await startWire();
    const ticket = await ask(wire, {}, 'raw');
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
    ['/a/b///', '/a/b/v1/wss/tickets'],
  ])('keeps a path in the base address: %s', async (path, url) => {
    await using wire = await startWire();
    await ask(wire, { baseUrl: wire.baseUrl + path });
    expect(wire.tickets[0]?.url).toBe(url);
  });

  it('requests no ticket for an unknown feed', async () => {
    await using wire = await startWire();
    await expect(ask(wire, {}, 'candles' as Feed)).rejects.toMatchObject({ code: 'invalid-options' });
    expect(wire.connections).toBe(0);
  });

  it('counts the lifetime, expires_at minus Date, from the request on, whatever the local clock shows', async () => {
    let arrivedMs = 0;
    const late: TicketStep = (response, wire, n) => {
      arrivedMs = performance.now();
      setTimeout(() => issue({ expires_at: '2001-01-01T00:00:42.5Z' }, { date: day })(response, wire, n), 150);
    };
    await using wire = await startWire({ ticket: [late] });
    const before = performance.now();
    const { deadlineMs } = await ask(wire);
    expect(deadlineMs).toBeGreaterThanOrEqual(before + 42_500);
    expect(deadlineMs).toBeLessThanOrEqual(arrivedMs + 42_500);
  });

  it('sets no deadline if the response lacks a valid Date', async () => {
    await using wire = await startWire({ ticket: [issue({}, { date: 'yesterday' })] });
    expect((await ask(wire)).deadlineMs).toBeUndefined();
  });

  it.each([
    ['head', true],
    ['body', false],
  ])('keeps its absolute deadline while the %s arrives byte by byte', async (_part, head) => {
    await using wire = await startWire({ ticket: [drip(head)] });
    const started = performance.now();
    await expect(ask(wire, { ticketTimeoutMs: 60 })).rejects.toMatchObject({
      code: 'ticket-endpoint-unreachable',
      message: expect.stringContaining('no answer in 60 ms'),
    });
    // The bytes never end, so a deadline of the silence would never come.
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
  });

  it.each<[string, TicketStep, object]>([
    [
      'whose body never ends',
      (response) => void response.writeHead(401).write('x'),
      { code: 'invalid-api-key', status: 401 },
    ],
    [
      'whose connection breaks in the body',
      (response) =>
        void response.writeHead(403, { 'content-length': '99' }).write('x', () => response.socket?.destroy()),
      { code: 'not-entitled' },
    ],
  ])('reports the status of a refusal %s', async (_, step, failure) => {
    await using wire = await startWire({ ticket: [step] });
    // The head has to arrive before the deadline.
    await expect(ask(wire, { ticketTimeoutMs: 2_000 })).rejects.toMatchObject(failure);
  });

  it('reads at most the allowed size of a body', async () => {
    await using wire = await startWire({ ticket: [padded(64 * 1024), padded(64 * 1024 + 1)] });
    expect(await ask(wire)).toMatchObject({ feed: 'market' });
    const message = expect.stringContaining('the body is longer than 65536 bytes') as unknown;
    await expect(ask(wire)).rejects.toMatchObject({ code: 'invalid-ticket', message });
  });

  it('leaves no connection open', async () => {
    await using wire = await startWire({ ticket: [issue(), refuse(500, {}, 'x'.repeat(300_000))] });
    await ask(wire);
    await ask(wire).catch(noop);
    await Promise.all([...wire.open].map(closed));
    expect(wire.connections).toBe(2);
  });

  it("reads the body of a refusal so that a user's dispatcher can reuse the connection", async () => {
    await using wire = await startWire({ ticket: [refuse(500, {}, 'x'.repeat(5_000)), refuse(503), issue()] });
    const dispatcher = new Agent({ connections: 1 });
    await expect(ask(wire, { dispatcher })).rejects.toMatchObject({ status: 500 });
    await expect(ask(wire, { dispatcher })).rejects.toMatchObject({ status: 503 });
    await expect(ask(wire, { dispatcher })).resolves.toMatchObject({ feed: 'market' });
    expect(wire.connections).toBe(1);
    await dispatcher.close();
  });

  it('reports a TLS error in the same turn as the end of the TLS handshake', async () => {
    await using wire = await startWire({ tls });
    const brokenRecord = Buffer.from([0x17, 3, 3, 0, 30, ...Buffer.alloc(30, 7)]);
    await using proxy = await listen(
      createTcp((client) => {
        const server = connectTcp(portOf(wire.baseUrl), '127.0.0.1');
        client.on('close', () => server.destroy()).on('data', (bytes) => server.write(bytes));
        server.on('error', () => client.destroy());
        server.once('data', (flight) => client.write(Buffer.concat([flight, brokenRecord])));
      }),
    );
    // An attempt that waited for this deadline would never end here.
    const options = { ...ca, baseUrl: `https://127.0.0.1:${proxy.port}`, ticketTimeoutMs: 600_000 };
    await expect(ask(wire, options)).rejects.toMatchObject({
      code: 'ticket-endpoint-unreachable',
      cause: { code: 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC' },
    });
  });
});

const causesOf = (events: readonly FeedEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.cause] : []));

it('a ticket request that gets a header twice takes the first one', async () => {
  const twice: TicketStep = (response) =>
    void response.writeHead(429, ['retry-after', '7', 'retry-after', '9']).end('{}');
  await using wire = await startWire({ ticket: [twice] });
  await expect(ask(wire)).rejects.toMatchObject({ code: 'ticket-rate-limited', retryAfterMs: 7_000 });
});

describe('the connection of the ticket requests', () => {
  it.each(transports)('is reused as long as the service keeps it open: %s', async (_, script) => {
    await using service = await startTwoOrigins({ ...script, handshake: [expired, expired, frames] });
    await opened(service, 3, ca);
    expect(service.tickets.tickets).toHaveLength(3);
    expect(service.tickets.connections).toBe(1);
    expect(service.gate.connections).toBe(3);
  });

  const leaving: readonly (readonly [string, TicketStep])[] = [
    ['announces the close', issue({}, { connection: 'close' })],
    ['keeps no idle connection open', issue({}, { 'keep-alive': 'timeout=1' })],
    [
      'closes it',
      (response, wire, n) => {
        response.once('close', () => response.req.socket.end());
        issue()(response, wire, n);
      },
    ],
  ];
  it.each(leaving)('is replaced if the service %s', async (_, step) => {
    await using wire = await startWire({ ticket: [step, issue()], handshake: [expired, frames] });
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { backoff: stable }));
    const events = await until(events$, (event) => event.type === 'opened' && event.connection === 2);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(wire.tickets).toHaveLength(2);
    expect(wire.connections).toBe(4);
  });

  it('is replaced after a refusal, because another server may answer at the same address', async () => {
    await using wire = await startWire({ ticket: [refuse(503), issue()], handshake: [frames] });
    await until(tradeFeedEvents$('market', optionsFor(wire)), ({ type }) => type === 'opened');
    expect(wire.connections).toBe(3);
  });

  it('is replaced after an incomplete answer', async () => {
    using _timers = fakeTimers();
    const endless: TicketStep = (response) => {
      response.writeHead(200).write('{');
      void turns().then(() => jest.advanceTimersByTime(10_000));
    };
    await using wire = await startWire({ ticket: [endless, issue()], handshake: [frames] });
    const backoff = { scheduler: new VirtualTimeScheduler() };
    const events: FeedEvent[] = [];
    const subscription = tradeFeedEvents$('market', optionsFor(wire, { backoff })).subscribe((event) => {
      events.push(event);
      // Waits no time before the next attempt.
      if (event.type === 'reconnecting') setImmediate(() => backoff.scheduler.flush());
    });
    await waitFor(() => events.some(({ type }) => type === 'opened'));
    subscription.unsubscribe();
    expect(failuresOf(events)).toEqual(['ticket-endpoint-unreachable']);
    expect(wire.connections).toBe(3);
  });

  it("is not stored if a user's dispatcher connects", async () => {
    await using service = await startTwoOrigins({ handshake: [expired, frames] });
    const dispatcher = new Agent({ pipelining: 0 });
    await opened(service, 2, { dispatcher });
    expect(service.tickets.connections).toBe(2);
    await dispatcher.close();
  });
});

describe('a request on a stored connection that is closed before the first byte of an answer', () => {
  it.each(transports)('is repeated once over a new connection, in the same attempt: %s', async (_, script) => {
    await using service = await startTwoOrigins({
      ...script,
      tickets: (granted) => [granted, dropped, granted],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2, ca);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(events.filter(({ type }) => type === 'ticket-requested')).toHaveLength(2);
    expect(service.tickets.tickets).toHaveLength(3);
    expect(service.tickets.connections).toBe(2);
  });

  const notAgain: readonly (readonly [string, readonly TicketStep[], number])[] = [
    ['if the new connection is closed, too', [dropped, dropped], 3],
    ['if an answer had started', [(response) => response.socket?.write('HTTP', () => response.socket?.destroy())], 2],
    [
      'if the head of an answer had arrived',
      [(response) => void response.writeHead(200).write('{', () => response.socket?.destroy())],
      2,
    ],
  ];
  it.each(notAgain)("isn't repeated %s", async (_, steps, requests) => {
    await using service = await startTwoOrigins({
      tickets: (granted) => [granted, ...steps, granted],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2);
    expect(failuresOf(events)).toEqual(['access-expired', 'ticket-endpoint-unreachable']);
    expect(causesOf(events).at(-1)).toMatchObject({ message: expect.stringMatching(/other side closed|terminated/) });
    expect(service.tickets.tickets).toHaveLength(requests + 1);
  });

  it('keeps its deadline', async () => {
    using _timers = fakeTimers();
    const late: TicketStep = (response, wire, n) => {
      jest.advanceTimersByTime(1_500);
      dropped(response, wire, n);
    };
    await using service = await startTwoOrigins({ tickets: (granted) => [granted, late, noop], handshake: [expired] });
    const events: FeedEvent[] = [];
    const subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ticketTimeoutMs: 2_000 }),
    ).subscribe((event) => events.push(event));
    await waitFor(() => service.tickets.tickets.length === 3);
    jest.advanceTimersByTime(499);
    await turns();
    expect(failuresOf(events)).toEqual(['access-expired']);
    jest.advanceTimersByTime(1);
    await waitFor(() => failuresOf(events).length === 2);
    expect(failuresOf(events)).toEqual(['access-expired', 'ticket-endpoint-unreachable']);
    expect(service.tickets.tickets).toHaveLength(3);
    subscription.unsubscribe();
  });
});

const keyOf = (apiKey: () => string | Promise<string>, ticketTimeoutMs = 5_000) =>
  firstValueFrom(apiKey$(resolveTicketOptions({ baseUrl: 'http://localhost', apiKey, ticketTimeoutMs })));

// eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as a user's function might
const throwing = (reason: unknown): Promise<never> => Promise.reject(reason);

describe('apiKey$', () => {
  it.each([
    ['rejects with an error', new Error('no vault'), 'no vault'],
    ['rejects with something else', 'planted-secret', 'it rejected'],
  ])(
    "fails with api-key-unavailable if the function %s, and shows only the error's message",
    async (_, thrown, words) => {
      const failure = keyOf(() => throwing(thrown));
      await expect(failure).rejects.toMatchObject({
        code: 'api-key-unavailable',
        stage: 'ticket',
        message: expect.stringContaining(`(${words})`),
        cause: thrown,
      });
    },
  );

  it('returns the key of the function, and refuses one that is too long, showing only its length', async () => {
    expect((await keyOf(() => Promise.resolve('mine'))).reveal()).toBe('mine');
    const failure: unknown = await keyOf(() => 'planted'.repeat(10_000)).catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 'invalid-options',
      message: expect.stringContaining('got 70000 characters'),
    });
    expect(String(failure)).not.toContain('planted');
  });
});

const duplex = () => {
  const socket = withoutInterimResponses(
    new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }),
  );
  const read = (): string => {
    const chunks: Buffer[] = [];
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
      chunks.push(chunk);
    return Buffer.concat(chunks).toString('latin1');
  };
  return { socket, read, receive: (text: string) => socket.push(Buffer.from(text, 'latin1')) };
};

const interim = fc
  .tuple(fc.constantFrom(100, 102, 103, 199), fc.constantFrom('', 'x: y\r\n', 'x: HTTP/1.1 200 OK\r\ny: z\r\n'))
  .map(([status, fields]) => `HTTP/1.1 ${status} Any\r\n${fields}\r\n`);
const response = fc.constantFrom(
  'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nHTTP/1.1 100',
  'HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.0 503 Busy\r\n\r\n',
  'HTTP/1.1 1xx\r\n\r\n',
  'SSH-2.0-x',
  'H',
);

it('withoutInterimResponses removes every 1xx before a response, and nothing else, however the bytes are split', () => {
  const answers = fc.array(fc.tuple(fc.array(interim, { maxLength: 3 }), response), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(answers, fc.infiniteStream(fc.integer({ min: 1, max: 30 })), (each, sizes) => {
      const { socket, read, receive } = duplex();
      for (const [before, answer] of each) {
        socket.write('a request');
        const bytes = before.join('') + answer;
        for (let at = 0; at < bytes.length;) {
          const { value: size } = sizes.next() as { value: number };
          receive(bytes.slice(at, at + size));
          at += size;
        }
        // What might still become a 1xx is emitted at the end.
        if (answer === 'H') {
          socket.push(null);
          expect(read()).toBe(answer);
          return;
        }
        expect(read()).toBe(answer);
      }
    }),
    { numRuns: cases(1_000) },
  );
});

const unexpected = [
  'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Go on\r\nx: 1\r\n\r\nHTTP/1.1 199 Later\r\n\r\n',
].join('');

/** Writes these heads before the ticket and before the 101, alone or in one write with the answer. */
const informing = (isAlone: boolean): WireScript => {
  const then = (socket: Duplex | null, answer: () => void): void => {
    if (!isAlone) socket?.cork();
    socket?.write(unexpected);
    if (isAlone) setTimeout(answer, 5);
    else answer();
    socket?.uncork();
  };
  return {
    ticket: [(response, wire, n) => then(response.socket, () => issue()(response, wire, n))],
    handshake: [(peer, wire, n) => then(peer.socket, () => accept(text('a'), close(4003, ''))(peer, wire, n))],
  };
};

it.each([
  ['alone', true, {}],
  ['with the answer', false, {}],
  // This dispatcher connects to loopback hosts directly.
  ['alone, to proxyFromEnvironment', true, await proxyFromEnvironment({ env: { HTTPS_PROXY: 'http://127.0.0.1:1' } })],
])(
  'unexpected informational answers are skipped before each ticket and before the 101: %s',
  async (_, isAlone, more) => {
    await using wire = await startWire(informing(isAlone));
    const feed$ = tradeFeed$('market', optionsFor(wire, { ...more, backoff: { stableAfterMs: 0 } }));
    const frames = await firstValueFrom(feed$.pipe(take(2), toArray()));
    expect(frames.map((frame) => frame.text())).toEqual(['a', 'a']);
    expect([wire.tickets.length, wire.connections]).toEqual([2, 3]);
  },
);
