import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { defaultErrorBody, type ErrorBody, type Refusal } from './refusal.js';

/** An answer with a JSON body. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Makes the answer of a JSON value. Nothing of this service is to be kept: tickets are secrets.
 *
 * Its `Date` is read here, from the clock that `expires_at` is read from: Node's own header stays on real time when a test mocks `Date`.
 */
export const jsonAnswer = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer => {
  // Of `undefined` there is no JSON: an empty body.
  const body = (JSON.stringify(value) as string | undefined) ?? '';
  return {
    status,
    headers: {
      Date: new Date().toUTCString(),
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'Cache-Control': 'no-store',
      ...headers,
    },
    body,
  };
};

/** Makes the answer of a refusal; what a user's `errorBody` throws is told in the stand-in's place. */
export const refusalAnswer = (refusal: Refusal, errorBody: ErrorBody): Answer => {
  const { status, headers } = refusal;
  try {
    return jsonAnswer(status, errorBody(refusal), headers);
  } catch (error) {
    return jsonAnswer(
      status,
      defaultErrorBody({ ...refusal, message: `The option errorBody threw: ${String(error)}` }),
      headers,
    );
  }
};

/** Sends an answer to an HTTP request. */
export const sendAnswer = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, headers).end(body);
};

/** Sends an answer to a handshake that is refused, and ends its socket. */
export const endHandshake = (socket: Duplex, { status, headers, body }: Answer): void => {
  const all = { Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  // The client may be gone already; its error is no news.
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end([`HTTP/1.1 ${status} ${String(STATUS_CODES[status])}`, ...lines, '', body].join('\r\n'));
};
