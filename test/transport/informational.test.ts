import { afterEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import { close, subprotocol, text } from '../support/wire.js';

/** A raw TCP service that sends these heads before each of its answers (RFC 9110, 15.2). */
interface Informing {
  readonly beforeTicket?: string;
  readonly beforeUpgrade?: string;
  /** Sends the heads in a separate write. */
  readonly apart?: boolean;
}

const servers: Server[] = [];
const sockets = new Set<Socket>();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) {
    server.close();
    await once(server, 'close');
  }
});

const startInforming = async ({ beforeTicket = '', beforeUpgrade = '', apart = false }: Informing) => {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay().on('error', () => undefined);
    const answer = (before: string, rest: Buffer) => {
      if (!apart) return void socket.write(Buffer.concat([Buffer.from(before), rest]));
      socket.write(before, () => setTimeout(() => socket.write(rest), 5));
    };
    let request = '';
    socket.on('data', (bytes) => {
      request += bytes.toString('latin1');
      const isUpgrade = request.startsWith('GET');
      if (isUpgrade ? request.endsWith('\r\n\r\n') : request.endsWith('}')) {
        answer(isUpgrade ? beforeUpgrade : beforeTicket, isUpgrade ? upgraded(request) : ticket());
        request = '';
      }
    });
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  const ticket = () => {
    const body = JSON.stringify({
      ...{ ticket: 'planted-ticket', token_type: 'Bearer', expires_at: new Date(Date.now() + 60_000).toISOString() },
      ...{ wss_url: `ws://${host}/ws`, feed: 'market', subprotocol },
    });
    return Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  };
  const upgraded = (head: string) => {
    const key = /sec-websocket-key: (.+)\r\n/i.exec(head)?.[1] ?? '';
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    return Buffer.concat([
      Buffer.from(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n\r\n`,
      ),
      text('a frame'),
      close(4001, 'connection replaced'),
    ]);
  };
  return { baseUrl: `http://${host}` };
};

const hints = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n';
const processing = 'HTTP/1.1 102 Processing\r\n\r\n';
const goOn = 'HTTP/1.1 100 Continue\r\n\r\n';
const unknown = 'HTTP/1.1 199 Later\r\nx-later: 1\r\n\r\n';

const heads = [
  ['103', hints],
  ['102', processing],
  ['an unknown one', unknown],
  ['several', processing + hints + unknown + hints],
] as const;

const received = async (options: TradeFeedOptions) => {
  const texts: string[] = [];
  const failure: unknown = await new Promise((resolve) => {
    tradeFeed$('market', options).subscribe({ next: (frame) => texts.push(frame.text()), error: resolve });
  });
  return { texts, failure };
};

describe.each([
  ['in the same write', false],
  ['apart', true],
])('an unexpected informational answer, %s', (_when, apart) => {
  it.each(heads)('is skipped before the ticket: %s', async (_what, beforeTicket) => {
    const { texts, failure } = await received(optionsFor(await startInforming({ beforeTicket, apart })));
    expect(failure).toMatchObject({ code: 'connection-replaced', framesReceived: 1 });
    expect(texts).toEqual(['a frame']);
  });

  it.each([...heads, ['100', goOn], ['100 and 103', goOn + hints]])(
    'is skipped before the 101: %s',
    async (_what, beforeUpgrade) => {
      const { texts, failure } = await received(optionsFor(await startInforming({ beforeUpgrade, apart })));
      expect(failure).toMatchObject({ code: 'connection-replaced', framesReceived: 1 });
      expect(texts).toEqual(['a frame']);
    },
  );

  it('is not skipped before the ticket if it is a 100, which undici reports as a bad response', async () => {
    const { failure, goesOn } = await outcomeOf(optionsFor(await startInforming({ beforeTicket: goOn, apart })));
    expect(failure).toMatchObject({ stage: 'ticket', code: 'ticket-endpoint-unreachable', verdict: 'backoff' });
    expect(failure.message).toContain('bad response');
    expect(goesOn).toBe(true);
  });
});
