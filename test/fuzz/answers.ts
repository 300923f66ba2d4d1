import { createHash } from 'node:crypto';
import { plantedTicket } from './failure-rules.js';

/** What a server does with a connection after its last byte. */
export type End = 'end' | 'reset' | 'stay';

/** Returns the bytes of an answer, one item for each write of the server. Receives the request and the address of the stream. */
export interface Answer {
  readonly bytes: (request: string, wssUrl: string) => readonly Buffer[];
  readonly end: End;
}

/** The answers to the two requests of an attempt. */
export interface Script {
  readonly ticket: Answer;
  readonly handshake: Answer;
}

/** The `Sec-WebSocket-Accept` that answers a handshake. */
export const acceptFor = (request: string): string => {
  const key = /sec-websocket-key: *(\S+)/i.exec(request)?.[1] ?? '';
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
};

/** The fields of a valid ticket. */
export const ticketFields = (wssUrl: string) => ({
  ticket: plantedTicket,
  token_type: 'Bearer',
  expires_at: '2999-01-01T00:00:00Z',
  wss_url: wssUrl,
  feed: 'market',
  subprotocol: 'mmp.trade-batch.v1',
});

/** A valid HTTP answer. */
export const httpAnswer = (status: string, body: Buffer, headers: readonly string[] = []): Buffer =>
  Buffer.concat([
    Buffer.from([`HTTP/1.1 ${status}`, `Content-Length: ${body.length}`, ...headers, '', ''].join('\r\n'), 'latin1'),
    body,
  ]);

/** Issues a valid ticket. */
export const goodTicket: Answer = {
  bytes: (_request, wssUrl) => [httpAnswer('200 OK', Buffer.from(JSON.stringify(ticketFields(wssUrl))))],
  end: 'stay',
};

/** The headers that accept a handshake. */
export const goodHead = (request: string): string =>
  [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptFor(request)}`,
    'Sec-WebSocket-Protocol: mmp.trade-batch.v1',
    '',
    '',
  ].join('\r\n');
