import { describe, expect, it } from '@jest/globals';
import { createServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTls } from 'node:tls';
import { firstValueFrom } from 'rxjs';
import { tradeFeed$ } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import { listen } from '../support/listen.js';
import { accept, type HandshakeStep, issue, refuse, refuseHandshake, startWire } from '../support/wire.js';
import { switching, text, ticketBody, type TicketStep } from '../support/wire.js';

/** Writes the same bytes as long as the socket is open. */
const endless = (socket: Duplex | null, first: string, again: string): void => {
  const bytes = Buffer.from(again.repeat(1_000));
  const write = () => {
    while (socket && !socket.destroyed && socket.write(bytes));
  };
  socket?.on('drain', write).on('error', () => undefined);
  socket?.write(first, 'latin1');
  write();
};

const unreachable = { code: 'ticket-endpoint-unreachable', verdict: 'backoff' };

describe('a hostile ticket endpoint', () => {
  it('that sends endless headers is cut off long before the deadline', async () => {
    await using wire = await startWire({
      ticket: [({ socket }) => endless(socket, 'HTTP/1.1 200 OK\r\n', 'x-more: of the same\r\n')],
    });
    const { failure } = await outcomeOf(optionsFor(wire, { ticketTimeoutMs: 600_000 }));
    expect(failure).toMatchObject(unreachable);
  });

  it('that only sends 1xx answers is cut off long before the deadline', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n';
    await using wire = await startWire({ ticket: [({ socket }) => endless(socket, '', hints)] });
    const { failure } = await outcomeOf(optionsFor(wire, { ticketTimeoutMs: 600_000 }));
    expect(failure).toMatchObject(unreachable);
    expect(failure.message).toContain('more than 65536 bytes of informational responses');
  });

  it('may name another host in wss_url, which gets the ticket but not the key', async () => {
    await using stream = await startWire({ handshake: [accept(text('a'))] });
    await using wire = await startWire({ ticket: [issue({ wss_url: stream.wssUrl })] });
    await firstValueFrom(tradeFeed$('market', optionsFor(wire)));
    const [handshake] = stream.handshakes;
    expect(handshake?.headers.authorization).toBe('Bearer planted-ticket-1');
    expect(JSON.stringify([stream.tickets, handshake])).not.toContain(plantedKey);
    expect(wire.handshakes).toHaveLength(0);
  });

  it('cannot change a prototype with a ticket or a frame', async () => {
    const prototypes = '"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}';
    const step: TicketStep = (response, wire, n) =>
      void response.end(`{${prototypes},${JSON.stringify(ticketBody(wire, n)).slice(1)}`);
    await using wire = await startWire({ ticket: [step], handshake: [accept(text(`{${prototypes}}`))] });
    const parsed = (await firstValueFrom(tradeFeed$('market', optionsFor(wire)))).json() as object;
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect(Object.keys(parsed)).toEqual(['__proto__', 'constructor']);
    expect({}).not.toHaveProperty('isAdmin');
  });
});

describe('a hostile answer to the handshake', () => {
  it('that has too many headers is cut off long before the deadline', async () => {
    const endlessHeaders: HandshakeStep = (peer) => {
      const [head = ''] = switching(peer).split('\r\n\r\n');
      endless(peer.socket, `${head}\r\n`, 'x-more: of the same\r\n');
    };
    await using wire = await startWire({ handshake: [endlessHeaders] });
    const { failure } = await outcomeOf(optionsFor(wire, { handshakeTimeoutMs: 600_000 }));
    expect(failure).toMatchObject({ code: 'handshake-unreachable', verdict: 'backoff' });
  });

  it('that refuses with an endless body is not read beyond the headers', async () => {
    await using wire = await startWire({
      handshake: [({ socket }) => endless(socket, 'HTTP/1.1 503 Busy\r\ncontent-length: 1000000000000\r\n\r\n', 'x')],
    });
    const { failure } = await outcomeOf(optionsFor(wire, { handshakeTimeoutMs: 600_000 }));
    expect(failure).toMatchObject({ code: 'capacity-full', verdict: 'backoff' });
  });
});

describe.each([301, 302, 303, 307, 308])('a redirect with %i is not followed', (status) => {
  it('by the ticket request, so no other server gets the key', async () => {
    await using other = await startWire();
    await using wire = await startWire({ ticket: [refuse(status, { location: `${other.baseUrl}/v1/wss/tickets` })] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'ticket-request-rejected', status, verdict: 'stop' });
    expect(other.connections).toBe(0);
    expect(failure.message).not.toContain(plantedKey);
  });

  it('by the handshake, so no other server gets the ticket', async () => {
    await using other = await startWire();
    await using wire = await startWire({ handshake: [refuseHandshake(status, { location: other.wssUrl })] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'handshake-failed', status, verdict: 'stop' });
    expect([other.connections, wire.handshakes.length]).toEqual([0, 1]);
  });
});

const certificate = await certificateFor();

/** A TCP server on loopback that stores all received bytes. */
const listening = async (answer: string) => {
  const heard: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('data', (bytes: Buffer) => heard.push(bytes)).once('data', () => socket.end(answer));
  });
  const { port, ...running } = await listen(server);
  return { ...running, host: `127.0.0.1:${port}`, heard: () => Buffer.concat(heard).toString('latin1') };
};

describe('a connection without TLS, or with a weaker one', () => {
  it('gets no key if the service answers https: without TLS', async () => {
    await using plain = await listening('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    const { failure } = await outcomeOf(optionsFor({ baseUrl: `https://${plain.host}` }));
    expect(failure).toMatchObject({ code: 'ticket-endpoint-without-tls', verdict: 'stop' });
    expect(plain.heard()).not.toBe('');
    expect(plain.heard()).not.toContain(plantedKey);
  });

  it('is refused if it uses TLS 1.1 or older', async () => {
    // The server gets a ClientHello that offers 1.2 or later.
    const offers: string[] = [];
    const old = createTls({ ...certificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' });
    old.on('tlsClientError', (error: NodeJS.ErrnoException) => offers.push(String(error.code)));
    await using server = await listen(old);
    const options = optionsFor({ baseUrl: `https://127.0.0.1:${server.port}` }, { tls: { ca: certificate.cert } });
    const { failure } = await outcomeOf(options);
    expect(failure).toMatchObject({ code: 'ticket-endpoint-unreachable' });
    expect(offers).toContain('ERR_SSL_UNSUPPORTED_PROTOCOL');
  });

  it('gets the key despite an untrusted certificate only if `rejectUnauthorized` is false', async () => {
    await using wire = await startWire({ tls: certificate });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'untrusted-certificate', verdict: 'stop' });
    expect(wire.tickets).toHaveLength(0);
    await outcomeOf(optionsFor(wire, { tls: { rejectUnauthorized: false }, idleTimeoutMs: 20 }));
    expect(wire.tickets[0]?.headers['x-api-key']).toBe(plantedKey);
  });
});
