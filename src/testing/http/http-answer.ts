import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorBody, Refusal } from './refusal.js';

/** An answer with a JSON body. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Makes the answer of a JSON value. Nothing of this service is to be kept: tickets are secrets. */
export const jsonAnswer = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer => {
  const body = JSON.stringify(value);
  return {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      ...headers,
    },
    body,
  };
};

/** Makes the answer of a refusal. */
export const refusalAnswer = (refusal: Refusal, errorBody: ErrorBody): Answer =>
  jsonAnswer(refusal.status, errorBody(refusal), refusal.headers);

/** Sends an answer to an HTTP request. */
export const sendAnswer = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, headers).end(body);
};

/** Sends an answer to a handshake that is refused, and ends its socket. */
export const endHandshake = (socket: Duplex, { status, headers, body }: Answer): void => {
  const all = { Date: new Date().toUTCString(), Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  // The client may be gone already; its error is no news.
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end([`HTTP/1.1 ${status} ${String(STATUS_CODES[status])}`, ...lines, '', body].join('\r\n'));
};
