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
 * Creates an answer with a JSON body. `Cache-Control` forbids caches to store it, because tickets are secrets.
 *
 * Sets the `Date` header with the clock of `expires_at`. If a test mocks `Date`, the header of Node would show the real time.
 */
export const jsonAnswer = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer => {
  // `undefined` has no JSON: the body is empty.
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

/** Creates the answer of a refusal. If the user's `errorBody` throws, the default body reports the error. */
export const refusalAnswer = (refusal: Refusal, errorBody: ErrorBody): Answer => {
  const { status, headers } = refusal;
  try {
    return jsonAnswer(status, errorBody(refusal), headers);
  } catch (error) {
    return jsonAnswer(
      status,
      defaultErrorBody({ ...refusal, message: `The option errorBody threw an error: ${String(error)}` }),
      headers,
    );
  }
};

/** Sends an answer to an HTTP request. */
export const sendAnswer = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, headers).end(body);
};

/** Sends the answer to a refused handshake, and ends the socket. */
export const endHandshake = (socket: Duplex, { status, headers, body }: Answer): void => {
  const all = { Connection: 'close', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  // The client may have closed already. Its socket error is not reported.
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  socket.end([`HTTP/1.1 ${status} ${String(STATUS_CODES[status])}`, ...lines, '', body].join('\r\n'));
};
