import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { gzipSync } from 'node:zlib';
import { tradeFeed$ } from '../../src/index.js';
import { optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import { accept, issue, startWire, text, ticketBody, type TicketStep } from '../support/wire.js';

/** Writes the same bytes to the socket while it is open. */
const endless =
  (first: string, again: string): TicketStep =>
  ({ socket }) => {
    const bytes = Buffer.from(again.repeat(1_000));
    const write = () => {
      while (socket && !socket.destroyed && socket.write(bytes));
    };
    socket?.on('drain', write).on('error', () => undefined);
    socket?.write(first);
    write();
  };

const unreachable = { code: 'ticket-endpoint-unreachable', verdict: 'backoff' };

describe('a hostile ticket endpoint', () => {
  it('with endless headers is aborted when they are too many, long before the deadline', async () => {
    await using wire = await startWire({ ticket: [endless('HTTP/1.1 200 OK\r\n', 'x-more: of the same\r\n')] });
    const { failure } = await outcomeOf(optionsFor(wire, { ticketTimeoutMs: 600_000 }));
    expect(failure).toMatchObject(unreachable);
  });

  it('that only sends 1xx is aborted at the deadline', async () => {
    await using wire = await startWire({ ticket: [endless('', 'HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n')] });
    const { failure } = await outcomeOf(optionsFor(wire, { ticketTimeoutMs: 100 }));
    expect(failure).toMatchObject(unreachable);
  });

  it('that sends its body slowly is aborted at the deadline, even if bytes keep arriving', async () => {
    let drops: NodeJS.Timeout | undefined;
    await using wire = await startWire({
      ticket: [
        (response) => {
          response.writeHead(200).write('{');
          drops = setInterval(() => response.write(' '), 5);
          response.on('close', () => clearInterval(drops));
        },
      ],
    });
    const { failure } = await outcomeOf(optionsFor(wire, { ticketTimeoutMs: 100 }));
    clearInterval(drops);
    expect(failure).toMatchObject(unreachable);
    expect(failure.message).toContain('no answer in 100 ms');
  });

  it('that compresses its body is not inflated: compression is neither requested nor accepted', async () => {
    await using wire = await startWire({
      ticket: [
        (response, wire, n) => {
          const bomb = `${JSON.stringify(ticketBody(wire, n)).slice(0, -1)}${' '.repeat(30_000_000)}}`;
          response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(bomb));
        },
      ],
    });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure).toMatchObject({ code: 'invalid-ticket', verdict: 'stop' });
    expect(wire.tickets[0]?.headers).toMatchObject({ 'accept-encoding': 'identity' });
  });

  it('may name another host as wss_url, which receives the ticket but not the key', async () => {
    await using stream = await startWire({ handshake: [accept(text('a'))] });
    await using wire = await startWire({ ticket: [issue({ wss_url: stream.wssUrl })] });
    await firstValueFrom(tradeFeed$('market', optionsFor(wire)));
    const [handshake] = stream.handshakes;
    expect(handshake?.headers.authorization).toBe('Bearer planted-ticket-1');
    expect(JSON.stringify([stream.tickets, handshake])).not.toContain(plantedKey);
    expect(wire.handshakes).toHaveLength(0);
  });

  it('cannot change a prototype with the fields of a ticket', async () => {
    await using wire = await startWire({
      ticket: [
        (response, wire, n) => {
          const fields = JSON.stringify(ticketBody(wire, n)).slice(1);
          response.end(`{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}},${fields}`);
        },
      ],
      handshake: [accept(text('a'))],
    });
    expect((await firstValueFrom(tradeFeed$('market', optionsFor(wire)))).text()).toBe('a');
    expect({}).not.toHaveProperty('isAdmin');
  });
});
