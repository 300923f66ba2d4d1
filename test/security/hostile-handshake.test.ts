import { describe, expect, it } from '@jest/globals';
import type { Duplex } from 'node:stream';
import { optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import { type HandshakeStep, refuseHandshake, startWire, switching } from '../support/wire.js';

/** Writes the same bytes while the socket is open. */
const endless = (socket: Duplex, first: string, again: string): void => {
  const bytes = Buffer.from(again.repeat(1_000));
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', write).on('error', () => undefined);
  socket.write(first);
  write();
};

const endlessHeaders: HandshakeStep = (peer) => {
  const [head = ''] = switching(peer).split('\r\n\r\n');
  endless(peer.socket, `${head}\r\n`, 'x-more: of the same\r\n');
};

describe('a hostile answer to the handshake', () => {
  it('with endless headers is aborted when they are too many, long before the deadline', async () => {
    await using wire = await startWire({ handshake: [endlessHeaders] });
    const { failure } = await outcomeOf(optionsFor(wire, { handshakeTimeoutMs: 600_000 }));
    expect(failure).toMatchObject({ code: 'handshake-unreachable', verdict: 'backoff' });
  });

  it('that refuses with an endless body is read up to the headers only', async () => {
    await using wire = await startWire({
      handshake: [({ socket }) => endless(socket, 'HTTP/1.1 503 Busy\r\ncontent-length: 1000000000000\r\n\r\n', 'x')],
    });
    const { failure } = await outcomeOf(optionsFor(wire, { handshakeTimeoutMs: 600_000 }));
    expect(failure).toMatchObject({ code: 'capacity-full', verdict: 'backoff' });
  });

  it.each([301, 302, 307, 308])(
    'that redirects with %i is not followed: no other server receives the ticket',
    async (status) => {
      await using other = await startWire();
      await using wire = await startWire({ handshake: [refuseHandshake(status, { location: other.wssUrl })] });
      const { failure } = await outcomeOf(optionsFor(wire));
      expect(failure).toMatchObject({ code: 'handshake-failed', status, verdict: 'stop' });
      expect([other.connections, wire.handshakes.length]).toEqual([0, 1]);
    },
  );
});

it.each([301, 302, 303, 307, 308])(
  'a ticket endpoint that redirects with %i: no other server receives the key',
  async (status) => {
    await using other = await startWire();
    const location = `${other.baseUrl}/v1/wss/tickets`;
    await using wire = await startWire({ ticket: [(response) => response.writeHead(status, { location }).end()] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'ticket-request-rejected', status, verdict: 'stop' });
    expect(other.connections).toBe(0);
    expect(failure.message).not.toContain(plantedKey);
  },
);
