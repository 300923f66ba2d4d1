import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The path of the ticket endpoint (contract, section 4.1). */
export const ticketPath = '/v1/wss/tickets';

/** The path of the data connection (contract, section 4.2). */
export const streamPath = '/ws';

/** Every code that the service refuses a request with. */
export type RefusalCode =
  | 'not-found'
  | 'method-not-allowed'
  | 'upgrade-required'
  | 'request-too-large'
  | 'credential-service-unavailable'
  | 'invalid-api-key'
  | 'account-inactive'
  | 'not-entitled'
  | 'rate-limited'
  | 'invalid-body'
  | 'unknown-feed'
  | 'not-a-websocket-handshake'
  | 'shutting-down'
  | 'ticket-missing'
  | 'ticket-unknown'
  | 'ticket-consumed'
  | 'ticket-expired'
  | 'ticket-revoked'
  | 'address-mismatch'
  | 'subprotocol-mismatch'
  | 'capacity-full';

/** An HTTP refusal: the status of the contract, a code for programs, and a message for people. */
export interface Refusal {
  readonly status: number;
  readonly code: RefusalCode;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const refusal = (
  status: number,
  code: RefusalCode,
  message: string,
  headers: Refusal['headers'] = {},
): Refusal => ({ status, code, message, headers });

export const shuttingDown = refusal(503, 'shutting-down', 'The service is shutting down.', { Connection: 'close' });

/** Refuses other addresses and methods: the contract has two addresses, each with one method (section 4). */
export const refusalOfRoute = (target: string, method: string): Refusal | undefined => {
  const path = pathOf(target);
  const notAllowed = (allow: string, purpose: string): Refusal | undefined =>
    method === allow ? undefined : refusal(405, 'method-not-allowed', `Use ${allow} to ${purpose}.`, { Allow: allow });
  if (path === ticketPath) return notAllowed('POST', 'request a ticket');
  if (path === streamPath) return notAllowed('GET', 'open a data connection');
  return refusal(404, 'not-found', `Unknown address; the addresses are ${ticketPath} and ${streamPath}.`);
};

export const pathOf = (target: string): string => target.replace(/\?.*$/s, '');

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * No cache may store an answer, because tickets are secrets. `Date` uses the clock of `expires_at`: if a test mocks
 * `Date`, Node's own header would show the real time.
 */
export const jsonAnswer = (status: number, value: unknown, headers: Refusal['headers'] = {}): Answer => {
  // `JSON.stringify(undefined)` isn't a string, so the body is empty.
  const body = (JSON.stringify(value) as string | undefined) ?? '';
  const ours = {
    Date: new Date().toUTCString(),
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
  };
  return { status, headers: { ...ours, ...headers }, body };
};

/** Creates the answer. If the user's `errorBody` throws, the default body reports that error. */
export const refusalAnswer = (refused: Refusal, errorBody: ErrorBody): Answer => {
  const { status, headers } = refused;
  try {
    return jsonAnswer(status, errorBody(refused), headers);
  } catch (error) {
    const message = `The option errorBody threw an error: ${String(error)}`;
    return jsonAnswer(status, defaultErrorBody({ ...refused, message }), headers);
  }
};

export const sendAnswer = (response: ServerResponse, { status, headers, body }: Answer): void => {
  response.writeHead(status, headers).end(body);
};

export const endHandshake = (request: IncomingMessage, socket: Socket, answer: Answer): void => {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  // The client may already be gone. Nothing reports that socket error.
  socket.on('error', () => socket.destroy());
  response.on('finish', () => socket.destroySoon());
  sendAnswer(response, answer);
};

/** Returns the body of a refusal: any JSON value, because the contract doesn't show its format. */
export type ErrorBody = (refusal: Refusal) => unknown;

/** The default: `{ "error": { "code": …, "message": … } }`. */
export const defaultErrorBody: ErrorBody = ({ code, message }) => ({ error: { code, message } });
