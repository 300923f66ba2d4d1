import { createHash } from 'node:crypto';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttps, type Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Certificate } from './certificate.js';
import { listen } from './listen.js';

/**
 * A service whose bytes the test controls. Implements WebSocket itself and shares no code with src, not even src/testing.
 * The n-th step of a script answers the n-th ticket request or handshake; the last step repeats.
 */
export interface Wire extends AsyncDisposable {
  readonly baseUrl: string;
  readonly wssUrl: string;
  readonly tickets: readonly Request[];
  readonly handshakes: readonly Request[];
  /** The opcodes of all received WebSocket frames: 8 close, 9 ping, 10 pong. */
  readonly opcodes: readonly number[];
  readonly open: ReadonlySet<Socket>;
  readonly connections: number;
  /** Changes the certificate, for new connections. */
  readonly present: (certificate: Certificate) => void;
}

export interface Request {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly at: number;
}

export type TicketStep = (response: ServerResponse, wire: Wire, n: number) => void;
export type HandshakeStep = (peer: Peer, wire: Wire, n: number) => void;

export interface WireScript {
  readonly ticket?: readonly TicketStep[];
  readonly handshake?: readonly HandshakeStep[];
  readonly tls?: Certificate;
  readonly ignoresClose?: boolean;
  /** Keeps the server's half of a connection open after the client's FIN. */
  readonly staysOpen?: boolean;
}

export interface Peer {
  readonly socket: Duplex;
  readonly request: IncomingMessage;
}

export const subprotocol = 'mmp.trade-batch.v1';

export const ticketBody = (wire: Wire, n: number) => ({
  ticket: `planted-ticket-${n}`,
  token_type: 'Bearer',
  expires_at: new Date(Date.now() + 60_000).toISOString(),
  wss_url: wire.wssUrl,
  feed: 'market',
  subprotocol,
});

type Fields = Readonly<Record<string, unknown>>;

/** Answers 200 with a ticket. `fields` replaces fields of the body. */
export const issue =
  (fields: Fields | ((wire: Wire) => Fields) = {}, headers: Record<string, string> = {}): TicketStep =>
  (response, wire, n) => {
    const replaced = typeof fields === 'function' ? fields(wire) : fields;
    response.writeHead(200, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ ...ticketBody(wire, n), ...replaced }));
  };

export const refuse =
  (status: number, headers: Record<string, string> = {}, body = '{"error":"refused"}'): TicketStep =>
  (response) => {
    response.writeHead(status, headers).end(body);
  };

export const refuseHandshake =
  (status: number, headers: Record<string, string> = {}, body = ''): HandshakeStep =>
  ({ socket }) =>
    void socket.end(refusalOf(status, headers, body));

/** Returns the bytes of an answer that refuses a handshake. */
export const refusalOf = (status: number, headers: Readonly<Record<string, string>>, body = ''): string => {
  const lines = Object.entries({ 'content-length': String(body.length), connection: 'close', ...headers });
  return `HTTP/1.1 ${status} Refused\r\n${lines.map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n${body}`;
};

/** Returns the `Sec-WebSocket-Accept` for the key of a handshake. */
export const acceptOf = (key: string | undefined): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

/** Returns the head of a valid 101 response to a handshake with this key. */
export const switchingFor = (key: string | undefined, protocol = subprotocol): string => {
  const chosen = protocol === '' ? '' : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n${chosen}\r\n`;
};

export const switching = ({ request }: Peer, protocol?: string): string =>
  switchingFor(request.headers['sec-websocket-key'], protocol);

/** Accepts a handshake and sends WebSocket frames in the same write. */
export const accept =
  (...frames: readonly Buffer[]): HandshakeStep =>
  (peer) => {
    peer.socket.write(Buffer.concat([Buffer.from(switching(peer)), ...frames]));
  };

/** The fields of a frame (RFC 6455, 5.2). Any of them may be invalid. */
export interface FrameFields {
  readonly opcode: number;
  readonly payload?: string | Uint8Array;
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  readonly reserved?: number;
  /** The length in the header, if it isn't the payload's, and the number of extra bytes that encode it. */
  readonly length?: bigint;
  readonly lengthBytes?: 0 | 2 | 8;
}

const mask = Buffer.from([1, 2, 3, 4]);

/** Encodes a frame, valid or not. */
export const encodeFrame = ({
  opcode,
  payload = '',
  isFinal = true,
  isMasked = false,
  ...head
}: FrameFields): Buffer => {
  const data = Buffer.from(payload);
  const { reserved = 0, length = BigInt(data.length) } = head;
  const { lengthBytes = length < 126n ? 0 : length < 65_536n ? 2 : 8 } = head;
  const start = Buffer.alloc(2 + lengthBytes);
  start[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode;
  start[1] = (isMasked ? 0x80 : 0) | (lengthBytes === 0 ? Number(length) : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) start.writeUInt16BE(Number(length), 2);
  if (lengthBytes === 8) start.writeBigUInt64BE(length, 2);
  return Buffer.concat(isMasked ? [start, mask, data.map((byte, i) => byte ^ (mask[i % 4] as number))] : [start, data]);
};

/** Encodes a frame of a server: unmasked. */
export const wsFrame = (opcode: number, payload: string | Uint8Array = '', isFinal = true): Buffer =>
  encodeFrame({ opcode, payload, isFinal });

export const text = (payload: string): Buffer => wsFrame(1, payload);
export const binary = (payload: Buffer): Buffer => wsFrame(2, payload);
export const pong = (payload = ''): Buffer => wsFrame(10, payload);
export const close = (code?: number, reason: string | Uint8Array = ''): Buffer =>
  wsFrame(8, code === undefined ? '' : closePayload(code, reason));

/** Returns the payload of a close frame, cut off at the maximum size. */
export const closePayload = (code: number, reason: string | Uint8Array = ''): Buffer =>
  Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]).subarray(0, 125);

const step = <T>(steps: readonly T[], n: number): T => steps[Math.min(n, steps.length) - 1] as T;

export const startWire = async ({
  ticket = [issue()],
  handshake = [accept()],
  tls,
  ignoresClose,
  staysOpen,
}: WireScript = {}): Promise<Wire> => {
  const tickets: Request[] = [];
  const handshakes: Request[] = [];
  const opcodes: number[] = [];

  const server = tls ? createHttps(tls) : createHttp();
  server
    .on('request', (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        tickets.push(seen(request, Buffer.concat(chunks).toString()));
        step(ticket, tickets.length)(response, wire, tickets.length);
      });
    })
    .on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      handshakes.push(seen(request, ''));
      clientFrames(socket, head, (opcode) => {
        opcodes.push(opcode);
        if (opcode === 8 && !ignoresClose) socket.end();
      });
      // An HTTP server keeps its half of a connection open, even after an upgrade.
      if (!staysOpen) socket.on('end', () => socket.end());
      step(handshake, handshakes.length)({ socket, request }, wire, handshakes.length);
    });
  const listening = await listen(server, tls ? 'secureConnection' : 'connection');
  const host = `127.0.0.1:${listening.port}`;

  const wire: Wire = {
    baseUrl: `${tls ? 'https' : 'http'}://${host}`,
    wssUrl: `${tls ? 'wss' : 'ws'}://${host}/ws`,
    tickets,
    handshakes,
    opcodes,
    open: listening.open,
    present: (certificate) => (server as HttpsServer).setSecureContext(certificate),
    get connections() {
      return listening.connections;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await listening[Symbol.asyncDispose]();
    },
  };
  return wire;
};

const seen = ({ method, url, headers }: IncomingMessage, body: string): Request => ({
  method,
  url,
  headers,
  body,
  at: performance.now(),
});

/** Reads the WebSocket frames of a client: masked, and shorter than 126 bytes like all control frames. */
export const clientFrames = (
  socket: Duplex,
  head: Buffer,
  onFrame: (opcode: number, payload: string) => void,
): void => {
  let rest = head;
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 6 && rest.length >= 6 + ((rest[1] as number) & 127)) {
      const end = 6 + ((rest[1] as number) & 127);
      const mask = rest.subarray(2, 6);
      const payload = rest.subarray(6, end).map((byte, i) => byte ^ (mask[i % 4] as number));
      onFrame((rest[0] as number) & 15, Buffer.from(payload).toString('latin1'));
      rest = rest.subarray(end);
    }
  });
};
