import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { startTradeFeedService, type TradeFeedService, type TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import { certificateFor } from '../support/certificate.js';
import { report, secondsSince, within } from './fuzz.js';
import { answersIn, connectTo, goodClient, receivedBy } from './raw-client.js';

const requestTimeoutMs = 200;
/** Extra time in ms, because Node checks timeouts at intervals and this machine is busy. */
const SLACK_MS = 4_000;

const started: TradeFeedService[] = [];
const start = async (
  limits: TradeFeedServiceOptions['limits'],
  tls?: TradeFeedServiceOptions['tls'],
): Promise<TradeFeedService> => {
  const service = await startTradeFeedService({
    tls,
    limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 300, ...limits },
  });
  started.push(service);
  return service;
};
afterEach(async () => {
  await Promise.all(started.splice(0).map((service) => service.shutdown()));
});

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
    'closes the connections of 100 clients that send %s, and serves a valid client meanwhile',
    async (what, head) => {
      const service = await start({ requestTimeoutMs });
      await using good = await goodClient(service);
      const startedMs = performance.now();
      const slow = Array.from({ length: 100 }, () => connectTo(service));
      const received = slow.map(receivedBy);
      for (const socket of slow) socket.write(head);
      // Slow bytes are activity, but the time of a request is still bounded.
      const drip = setInterval(() => {
        for (const socket of slow) if (head !== '' && socket.writable) socket.write('1');
      }, 20);
      try {
        await good.isServed();
        const answers = (await Promise.all(received)).flatMap(answersIn);
        for (const { status } of answers) expect([400, 408, 413]).toContain(status);
        expect(performance.now() - startedMs).toBeLessThan(requestTimeoutMs + SLACK_MS);
        await good.isServed();
        report({
          property: `slow clients that send ${what}`,
          cases: 100,
          failures: 0,
          seconds: secondsSince(startedMs),
        });
      } finally {
        clearInterval(drip);
      }
    },
  );

  it('shuts down in bounded time while they are connected', async () => {
    const service = await start({ requestTimeoutMs: 60_000 });
    await using _good = await goodClient(service);
    const slow = Object.values(heads).flatMap((head) =>
      Array.from({ length: 20 }, () => {
        const socket = connectTo(service);
        socket.write(head);
        return { isThere: once(socket, 'connect'), received: receivedBy(socket) };
      }),
    );
    await Promise.all(slow.map(({ isThere }) => isThere));
    await within(300 + SLACK_MS, 'shutdown()', service.shutdown());
    await Promise.all(slow.map(({ received }) => received));
  });

  it.each([
    ['say nothing', ''],
    ['begin with a part of a hello', '\x16\x03\x01\x02\x00\x01\x00'],
    ['speak no TLS', 'GET / HTTP/1.1\r\n\r\n'],
  ])('closes the connections of clients that %s on a TLS port, and shuts down', async (_what, bytes) => {
    const service = await start({ requestTimeoutMs }, await certificateFor());
    const received = Array.from({ length: 50 }, () => {
      const socket = connectTo(service);
      if (bytes !== '') socket.write(bytes, 'latin1');
      return receivedBy(socket);
    });
    await within(requestTimeoutMs + SLACK_MS, 'cutting them off', Promise.all(received));
    await within(300 + SLACK_MS, 'shutdown()', service.shutdown());
  });
});
