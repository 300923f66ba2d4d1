import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Certificate } from './certificate.js';
import { heldHandshake, type HeldHandshake, type Stream } from './held-handshake.js';
import { heldTicket, type HeldTicket } from './held-ticket.js';
import { resetSocket } from './reset-socket.js';
import type { Request, Seen } from './ten-rules/seen.js';

/**
 * A service that holds every request until the test answers it. It reports everything that it sees of each subscription, which it
 * recognizes by the API key. Shares no code with src.
 */
export interface HeldService extends AsyncDisposable {
  readonly baseUrl: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Requests that wait for an answer and open streams, by subscription. */
  readonly tickets: ReadonlyMap<number, HeldTicket>;
  readonly handshakes: ReadonlyMap<number, HeldHandshake>;
  readonly streams: ReadonlyMap<number, Stream>;
  /** All open streams. A subscription can have two: an abandoned handshake may arrive late. */
  readonly allStreams: ReadonlySet<Stream>;
  /** The open TCP connections. */
  readonly open: ReadonlySet<Socket>;
  /** Refuses new connections and resets the open ones, except those that received a close frame. */
  readonly goDown: () => Promise<void>;
  readonly comeBack: () => Promise<void>;
}

/** Options of {@link startHeldService}. */
export interface HeldServiceOptions {
  /** Called with everything that the service sees of a subscription. */
  readonly see: (subscription: number, seen: Seen) => void;
  readonly tls?: Certificate | undefined;
  /** The port that clients connect to, when there is a proxy in front. */
  readonly publicPort?: () => number;
  /** Called when a ticket request or a handshake arrives. A test can answer it here. */
  readonly onTicket?: (ticket: HeldTicket) => void;
  readonly onHandshake?: (handshake: HeldHandshake) => void;
}

export const keyOf = (subscription: number): string => `planted-key-${subscription}-end`;
const subscriptionOf = (text: unknown): number =>
  Number(/^(?:Bearer )?planted-(?:key|ticket)-(\d+)-/.exec(String(text))?.[1]);

/** Starts a held service on loopback. */
export const startHeldService = async ({
  see,
  tls,
  publicPort,
  onTicket,
  onHandshake,
}: HeldServiceOptions): Promise<HeldService> => {
  const tickets = new Map<number, HeldTicket>();
  const handshakes = new Map<number, HeldHandshake>();
  const streams = new Map<number, Stream>();
  const allStreams = new Set<Stream>();
  const open = new Set<Socket>();
  let count = 0;
  let port = 0;

  const origin = () => `127.0.0.1:${publicPort?.() ?? port}`;
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    request.on('end', () => {
      const subscription = subscriptionOf(request.headers['x-api-key']);
      see(subscription, {
        what: 'ticket-request',
        at: performance.now(),
        request: asSeen(request, Buffer.concat(chunks)),
      });
      const address = `${tls ? 'wss' : 'ws'}://${origin()}`;
      const held = heldTicket({
        subscription,
        n: (count += 1),
        address,
        response,
        see: (seen) => see(subscription, seen),
      });
      tickets.set(subscription, held);
      void held.done.then(() => tickets.get(subscription) === held && tickets.delete(subscription));
      onTicket?.(held);
    });
  };
  const onUpgrade = (request: IncomingMessage, duplex: Socket, head: Buffer) => {
    const subscription = subscriptionOf(request.headers.authorization);
    const socket = (count += 1);
    const report = (seen: Seen) => see(subscription, seen);
    report({ what: 'handshake', at: performance.now(), request: asSeen(request), socket });
    const held = heldHandshake({ subscription, socket, request, duplex, head, see: report });
    handshakes.set(subscription, held);
    void held.done.then((stream) => {
      if (handshakes.get(subscription) === held) handshakes.delete(subscription);
      if (stream === undefined) return;
      streams.set(subscription, stream);
      allStreams.add(stream);
      void stream.gone.then(() => allStreams.delete(stream));
      void stream.gone.then(() => streams.get(subscription) === stream && streams.delete(subscription));
    });
    onHandshake?.(held);
  };

  let server: Server;
  const listen = async () => {
    server = tls ? createHttps(tls) : createHttp();
    // No timeout of the server may end a held request.
    Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0, timeout: 0 });
    server
      .on('connection', (socket: Socket) => {
        open.add(socket);
        socket.on('close', () => open.delete(socket)).on('error', () => undefined);
      })
      .on('secureConnection', (socket: Socket) => socket.on('error', () => undefined))
      .on('request', onRequest)
      .on('upgrade', onUpgrade)
      .listen(port, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  };
  const goDown = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    const closing = new Set([...streams.values()].filter((stream) => stream.isClosed).map((stream) => stream.duplex));
    for (const socket of open) if (!closing.has(socket)) resetSocket(socket);
    void closed;
    await new Promise((resolve) => setImmediate(resolve));
  };
  await listen();

  return {
    get baseUrl() {
      return `${tls ? 'https' : 'http'}://${origin()}`;
    },
    get port() {
      return port;
    },
    tickets,
    handshakes,
    streams,
    allStreams,
    open,
    goDown,
    comeBack: listen,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
};

const asSeen = ({ url = '', headers }: IncomingMessage, body: Buffer = Buffer.alloc(0)): Request => ({
  url,
  headers,
  body: body.toString(),
});
