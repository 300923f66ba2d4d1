/** @lane clock */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { once } from 'node:events';
import { startTradeFeedService, type TradeFeedService, type TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import { certificateFor } from '../support/certificate.js';
import { connectTo, handshakeLines, takeTicket } from '../testing/bare-client.js';
import { encodeFrame } from '../support/wire.js';
import { abuses, framesIn, harmless } from './client-frames.js';
import { bytesOf, garbage, last, requests } from './client-requests.js';
import { BOUND_MS, fuzz, report, secondsSince, seed, within } from './fuzz.js';
import { changed, changes, cutAt, places } from './mutated.js';
import { type GoodClient, goodClient, receivedBy, statusesIn } from './raw-client.js';
import { type End, play } from './scripted.js';

const refusals = [400, 401, 403, 404, 405, 408, 413, 417, 422, 426, 431, 501, 505];

/** Starts a service and a valid client before a block's tests, and stops both afterwards. */
const serviceWith = (limits: TradeFeedServiceOptions['limits']) => {
  let service: TradeFeedService;
  let good: GoodClient;
  beforeAll(async () => {
    service = await startTradeFeedService({ limits: { ticketsPerWindow: Infinity, ...limits } });
    good = await goodClient(service);
  });
  afterAll(async () => {
    await good[Symbol.asyncDispose]();
    await within(BOUND_MS, 'shutdown()', service.shutdown());
  });
  return { service: () => service, isServed: () => good.isServed() };
};

describe(`the local service and hostile HTTP, with FUZZ_SEED=${seed}`, () => {
  const { service, isServed } = serviceWith({ requestTimeoutMs: 5_000 });
  let apiKey: string;
  beforeAll(() => void (apiKey = service().createAccount().createApiKey()));

  const inOrder = 'answers each request in order, also if requests arrive in pieces or together';
  fuzz(inOrder, 'requests in pieces, pipelined', 96, fc.tuple(requests, places), async ([all, cuts]) => {
    const socket = connectTo(service());
    const received = receivedBy(socket);
    await play(socket, cutAt(bytesOf(all, apiKey), cuts), 'stay');
    expect(statusesIn(await received)).toEqual([...all, last].map(({ status }) => status));
    return `${all.length} requests`;
  });

  const refused = 'refuses invalid bytes or closes the connection, and serves a valid client meanwhile';
  const ended = fc.tuple(garbage, places, fc.constantFrom<End>('end', 'end', 'reset'));
  fuzz(refused, 'garbage in place of HTTP', 96, ended, async ([bytes, cuts, end]) => {
    const socket = connectTo(service());
    const received = receivedBy(socket);
    const [answered] = await Promise.all([received, play(socket, cutAt(bytes, cuts), end), isServed()]);
    const statuses = statusesIn(answered);
    for (const status of statuses) expect(refusals).toContain(status);
    return statuses.length === 0 ? 'no answer' : String(statuses[0]);
  });
});

describe(`the local service and hostile WebSocket clients, with FUZZ_SEED=${seed}`, () => {
  const { service, isServed } = serviceWith({ closeTimeoutMs: 100 });

  /** Sends a handshake and more bytes, in one write or two. Returns the frames after the answer's headers. */
  const framesAfter = async (bytes: Buffer, cuts: readonly number[], isWithHead: boolean, then: 'end' | 'stay') => {
    // One account for each case, because an account's second connection would replace the first.
    const apiKey = service().createAccount({ plan: 'developer' }).createApiKey();
    const { ticket, subprotocol } = await takeTicket(service(), apiKey);
    const lines = handshakeLines(ticket, { 'Sec-WebSocket-Protocol': subprotocol });
    const head = Buffer.from([...lines, '', ''].join('\r\n'));
    const pieces = isWithHead ? cutAt(Buffer.concat([head, bytes]), cuts) : [head, ...cutAt(bytes, cuts)];
    const socket = connectTo(service());
    const received = receivedBy(socket);
    await play(socket, pieces, then);
    const all = await received;
    const end = all.indexOf('\r\n\r\n') + 4;
    expect(all.subarray(0, end).toString()).toMatch(/^HTTP\/1\.1 101 /);
    return framesIn(all.subarray(end));
  };

  const ofRule = 'answers each ping, and closes with the code of the rule that was broken';
  const breaking = fc.tuple(harmless, abuses, places, fc.boolean());
  fuzz(ofRule, 'client frames', 96, breaking, async ([before, abuse, cuts, isWithHead]) => {
    const sent = Buffer.concat([...before, ...abuse.frames].map(encodeFrame));
    const [frames] = await Promise.all([framesAfter(sent, cuts, isWithHead, 'stay'), isServed()]);
    const pings = before.filter(({ opcode }) => opcode === 9).map(({ payload }) => Buffer.from(payload));
    const pongs = frames.filter(({ opcode }) => opcode === 10).map(({ payload }) => payload);
    expect(pongs.slice(0, pings.length)).toEqual(pings);
    expect(frames.filter(({ opcode }) => opcode !== 10)).toHaveLength(1);
    const { opcode, payload } = frames.at(-1) as { opcode: number; payload: Buffer };
    expect([opcode, payload.readUInt16BE(0)]).toEqual([8, abuse.closeCode]);
    return String(abuse.closeCode);
  });

  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(harmless, abuses, changes(4))
      .map(([before, { frames }, all]) => changed(Buffer.concat([...before, ...frames].map(encodeFrame)), all)),
  );
  const others = fc.tuple(anything, places, fc.boolean());
  const anyOther = 'closes any other connection, and serves a valid client meanwhile';
  fuzz(anyOther, 'client bytes', 96, others, async ([bytes, cuts, isWithHead]) => {
    const [frames] = await Promise.all([framesAfter(bytes, cuts, isWithHead, 'end'), isServed()]);
    const last = frames.find(({ opcode }) => opcode === 8)?.payload;
    if (last === undefined) return 'no close frame';
    const code = last.length === 0 ? 1005 : last.readUInt16BE(0);
    // The service returns the client's code if it's allowed on the wire (RFC 6455, 7.4). 1005 means no code.
    const maySend = (code >= 1000 && code <= 1014 && ![1004, 1006].includes(code)) || (code >= 3000 && code <= 4999);
    expect([code, maySend]).toEqual([code, true]);
    return [1002, 1008].includes(code) ? String(code) : "the client's code";
  });
});

// Only a test that hangs reaches this: what can hang has a shorter limit.
jest.setTimeout(4 * BOUND_MS);

const start = (requestTimeoutMs: number, tls?: TradeFeedServiceOptions['tls']): Promise<TradeFeedService> =>
  startTradeFeedService({ tls, limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 300, requestTimeoutMs } });

const heads = {
  'nothing at all': '',
  'a request line without end': 'POST /v1/wss/tick',
  'headers without end': 'GET /ws HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n',
  'a body that does not come': 'POST /v1/wss/tickets HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{',
  'chunks without end': 'POST /v1/wss/tickets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n',
  'a body that is too large': `POST /v1/wss/tickets HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(20_000)}`,
};

describe('the local service under slow clients', () => {
  it.each(Object.entries(heads))(
    'closes 100 connections that send %s, and serves a valid client meanwhile',
    async (what, head) => {
      await using service = await start(200);
      await using good = await goodClient(service);
      const startedMs = performance.now();
      const slow = Array.from({ length: 100 }, () => connectTo(service));
      const received = slow.map(receivedBy);
      for (const socket of slow) socket.write(head);
      // Slow bytes count as activity, but the request still has a deadline.
      const drip = setInterval(() => {
        for (const socket of slow) if (head !== '' && socket.writable) socket.write('1');
      }, 20);
      try {
        await good.isServed();
        for (const status of (await Promise.all(received)).flatMap(statusesIn))
          expect([400, 408, 413]).toContain(status);
        await good.isServed();
        const seconds = secondsSince(startedMs);
        report({ property: `slow clients that send ${what}`, cases: 100, failures: 0, seconds });
      } finally {
        clearInterval(drip);
      }
    },
  );

  it('shuts down in bounded time even while they are connected', async () => {
    const service = await start(60_000);
    await using _good = await goodClient(service);
    const slow = Array.from({ length: 20 }, () => Object.values(heads))
      .flat()
      .map((head) => {
        const socket = connectTo(service);
        socket.write(head);
        return { isThere: once(socket, 'connect'), received: receivedBy(socket) };
      });
    await Promise.all(slow.map(({ isThere }) => isThere));
    await within(BOUND_MS, 'shutdown()', service.shutdown());
    await Promise.all(slow.map(({ received }) => received));
  });

  it('closes the connections of clients that say nothing, begin a hello or speak no TLS on a TLS port, and still shuts down', async () => {
    const service = await start(200, await certificateFor());
    const hello = '\x16\x03\x01\x02\x00\x01\x00';
    const received = ['', hello, 'GET / HTTP/1.1\r\n\r\n'].flatMap((bytes) =>
      Array.from({ length: 50 }, () => {
        const socket = connectTo(service);
        if (bytes !== '') socket.write(bytes, 'latin1');
        return receivedBy(socket);
      }),
    );
    await Promise.all(received);
    await within(BOUND_MS, 'shutdown()', service.shutdown());
  });
});
