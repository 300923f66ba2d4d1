import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { closed } from '../support/feed.js';
import { type Answer, type End, goodTicket, httpAnswer, ticketFields } from './answers.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { changed, changes } from './mutated.js';
import { type Scripted, startScripted } from './scripted.js';

/** A server that answers a TLS client with other bytes. */
const startGarbler = async (bytes: Buffer, end: End) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.once('data', () => {
      socket.write(bytes);
      if (end === 'end') socket.end();
      if (end === 'reset') socket.resetAndDestroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await Promise.all([...sockets].map(closed));
    },
  };
};

// The start of a ServerHello, an alert, and answers of a server without TLS.
const starts = ['160303007a0200007603035f', '15030300020228', '1403030001011703030013'].map((hex) =>
  Buffer.from(hex, 'hex'),
);
const garbage: Arbitrary<Buffer> = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  fc.tuple(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 200 })).map((parts) => Buffer.concat(parts)),
  fc
    .tuple(fc.constantFrom('400 Bad Request', '200 OK', '101 Switching Protocols'), changes(2))
    .map(([status, all]) => changed(httpAnswer(status, Buffer.from(JSON.stringify(ticketFields('x')))), all)),
);

describe(`bytes in place of TLS, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => {
    scripted = await startScripted();
  });
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  const cases = fc.record({
    bytes: garbage,
    end: fc.constantFrom<End>('end', 'end', 'reset', 'stay'),
    stage: fc.constantFrom('ticket', 'handshake'),
  });
  const ticketFor = (host: string): Answer => ({
    ...goodTicket,
    bytes: () => [httpAnswer('200 OK', Buffer.from(JSON.stringify(ticketFields(`wss://${host}/`))))],
  });

  // The answer of a server without TLS stops the feed. Of other bytes OpenSSL decides whether they are a TLS record.
  const codesFor = (stage: string, bytes: Buffer, end: End): readonly string[] => {
    if (stage === 'handshake') return ['handshake-unreachable'];
    const isWholeHttp = end === 'end' && bytes.toString('latin1', 0, 5) === 'HTTP/';
    return [...(isWholeHttp ? [] : ['ticket-endpoint-unreachable']), 'ticket-endpoint-without-tls'];
  };

  it(
    'make the service unreachable, or show that it has no TLS',
    () =>
      fuzz('bytes in place of TLS', cases, 72, async ({ bytes, end, stage }) => {
        await using garbler = await startGarbler(bytes, end);
        const ms = end === 'stay' ? 100 : 15_000;
        const script = { ticket: ticketFor(garbler.host), handshake: goodTicket };
        const ran =
          stage === 'ticket'
            ? await scripted.run(script, { baseUrl: `https://${garbler.host}`, ticketTimeoutMs: ms })
            : await scripted.run(script, { handshakeTimeoutMs: ms });
        expect(codesFor(stage, bytes, end)).toContain(ran.code);
        return ran.code;
      }),
    timeoutFor(120),
  );
});
