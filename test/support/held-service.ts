import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Certificate } from './certificate.js';
import { freePort } from './free-port.mjs';
import { listen } from './listen.js';
import { type Issued, numberedPayload, type Observation, type Request, type Seen } from './ten-rules/seen.js';
import { clientFrames, close, pong, refusalOf, switching, wsFrame } from './wire.js';

export type HeldService = Awaited<ReturnType<typeof startHeldService>>;
type Headers = Readonly<Record<string, string>>;

export interface HeldServiceOptions {
  /** Called with everything that the service sees of a subscription. */
  readonly see: (subscription: number, seen: Seen) => void;
  readonly tls?: Certificate | undefined;
  /** The port that clients connect to if there's a proxy in front. */
  readonly publicPort?: () => number;
  /** Called for each ticket request or handshake. A test can answer it here. */
  readonly onTicket?: (ticket: HeldTicket) => void;
  readonly onHandshake?: (handshake: HeldHandshake) => void;
}

export const keyOf = (subscription: number): string => `planted-key-${subscription}-end`;
const subscriptionOf = (text: unknown): number =>
  Number(/^(?:Bearer )?planted-(?:key|ticket)-(\d+)-/.exec(String(text))?.[1]);

/**
 * Starts a service on loopback that holds every request until the test answers it. Reports everything it sees of each
 * subscription, which it recognizes by the API key. Shares no code with src.
 */
export const startHeldService = async ({ see, tls, publicPort, onTicket, onHandshake }: HeldServiceOptions) => {
  const tickets = new Map<number, HeldTicket>();
  const handshakes = new Map<number, HeldHandshake>();
  const streams = new Map<number, Stream>();
  const allStreams = new Set<Stream>();
  let count = 0;

  const reporter = (subscription: number) => (observation: Observation) =>
    see(subscription, { ...observation, at: performance.now() });
  const origin = () => `127.0.0.1:${publicPort?.() ?? port}`;
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    request.on('end', () => {
      const subscription = subscriptionOf(request.headers['x-api-key']);
      const report = reporter(subscription);
      report({ what: 'ticket-request', request: asSeen(request, Buffer.concat(chunks)) });
      const address = `${tls ? 'wss' : 'ws'}://${origin()}`;
      const held = heldTicket({ subscription, n: (count += 1), address, response, see: report });
      tickets.set(subscription, held);
      void held.done.then(() => tickets.get(subscription) === held && tickets.delete(subscription));
      onTicket?.(held);
    });
  };
  const onUpgrade = (request: IncomingMessage, duplex: Socket, head: Buffer) => {
    const subscription = subscriptionOf(request.headers.authorization);
    const socket = (count += 1);
    const report = reporter(subscription);
    report({ what: 'handshake', request: asSeen(request), socket });
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

  const server: Server = tls ? createHttps(tls) : createHttp();
  // The server's timeouts mustn't end a held request.
  Object.assign(server, { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0, timeout: 0 });
  server
    .on('secureConnection', (socket: Socket) => socket.on('error', () => undefined))
    .on('request', onRequest)
    .on('upgrade', onUpgrade);
  // Goes down and comes back on the same port.
  const { port, open, ...listening } = await listen(server, 'connection', await freePort());

  return {
    get baseUrl() {
      return `${tls ? 'https' : 'http'}://${origin()}`;
    },
    port,
    /** Unanswered requests and open streams, by subscription. */
    ...{ tickets, handshakes, streams },
    /** All open streams. A subscription can have two: an abandoned handshake may arrive late. */
    allStreams,
    open,
    /** Refuses new connections and resets the open ones, except those that received a close frame. */
    goDown: async () => {
      if (!server.listening) return;
      server.close();
      const closing = new Set([...streams.values()].filter((stream) => stream.isClosed).map(({ duplex }) => duplex));
      for (const socket of open) if (!closing.has(socket)) resetSocket(socket);
      await new Promise((resolve) => setImmediate(resolve));
    },
    comeBack: async () => {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    [Symbol.asyncDispose]: listening[Symbol.asyncDispose],
  };
};

const asSeen = ({ url = '', headers }: IncomingMessage, body: Buffer = Buffer.alloc(0)): Request => ({
  url,
  headers,
  body: body.toString(),
});

const waitIn = ({ 'retry-after': seconds }: Headers) =>
  Number(seconds) > 0 ? { retryAfterMs: Number(seconds) * 1_000 } : {};

interface TicketRequest {
  readonly subscription: number;
  readonly n: number;
  /** The origin for `wss_url`. */
  readonly address: string;
  readonly response: ServerResponse;
  readonly see: (observation: Observation) => void;
}

const requestsOver = new WeakMap<object, number>();

export type HeldTicket = ReturnType<typeof heldTicket>;

/** A ticket request that the test hasn't answered yet. */
const heldTicket = ({ subscription, n, address, response, see }: TicketRequest) => {
  const { socket } = response;
  const before = requestsOver.get(socket as object) ?? 0;
  requestsOver.set(socket as object, before + 1);

  let isDone = false;
  let finish: () => void;
  const done = new Promise<void>((resolve) => (finish = resolve));
  const end = (outcome: { readonly ticket?: Issued; readonly retryAfterMs?: number } = {}) => {
    if (isDone) return;
    isDone = true;
    see({ what: 'ticket-answered', ...outcome });
    finish();
  };
  response.on('close', () => end()).on('error', () => undefined);

  return {
    subscription,
    /** Whether the connection served an earlier request. If so, the client may repeat the request once. */
    isWarm: before > 0,
    /** Answers 200 with a ticket of this lifetime. */
    issue: (lifetimeMs: number) => {
      // Varies the address and the subprotocol with each ticket, because the client must use the returned ones.
      const ticket = `planted-ticket-${subscription}-${n}`;
      const path = `/ws/${n}?session=${n}`;
      const subprotocol = `mmp.trade-batch.v${n}`;
      // A `Date` header counts whole seconds.
      const now = Math.floor(Date.now() / 1_000) * 1_000;
      end({ ticket: { ticket, path, subprotocol } });
      response.writeHead(200, { 'content-type': 'application/json', date: new Date(now).toUTCString() }).end(
        JSON.stringify({
          ticket,
          token_type: 'Bearer',
          expires_at: new Date(now + lifetimeMs).toISOString(),
          wss_url: `${address}${path}`,
          feed: 'market',
          subprotocol,
        }),
      );
    },
    refuse: (status: number, headers: Headers = {}, body = '{"error":"refused"}') => {
      end(waitIn(headers));
      response.writeHead(status, { date: new Date().toUTCString(), ...headers }).end(body);
    },
    /** Sends raw bytes, then ends the connection. */
    answerRaw: (bytes: string) => {
      end();
      socket?.end(bytes);
    },
    reset: () => {
      end();
      if (socket) resetSocket(socket);
    },
    /** Resolves when the request is answered or the connection is closed. */
    done,
  };
};

interface Handshake {
  readonly subscription: number;
  readonly socket: number;
  readonly request: IncomingMessage;
  readonly duplex: Socket;
  readonly head: Buffer;
  readonly see: (observation: Observation) => void;
}

export type HeldHandshake = ReturnType<typeof heldHandshake>;

/** A handshake that the test hasn't answered yet. */
const heldHandshake = ({ subscription, socket, request, duplex, head, see }: Handshake) => {
  let finish: (stream?: Stream) => void;
  const done = new Promise<Stream | undefined>((resolve) => (finish = resolve));
  let isDone = false;
  const answered = (isOpen: boolean, wait = {}) => {
    if (isDone) return;
    isDone = true;
    see({ what: 'handshake-answered', isOpen, ...wait });
  };
  duplex
    .on('error', () => undefined)
    .on('end', () => duplex.end())
    .on('close', () => {
      see({ what: 'gone', socket });
      finish();
    });

  return {
    subscription,
    /** Answers 101, with frames in the same write. @param subprotocol - default: the requested one */
    accept: (frames = 0, subprotocol = request.headers['sec-websocket-protocol']) => {
      answered(true);
      const stream = streamOver({ subscription, socket, request, duplex, head, see });
      duplex.cork();
      duplex.write(switching({ socket: duplex, request }, subprotocol));
      stream.push(frames);
      duplex.uncork();
      finish(stream);
    },
    refuse: (status: number, headers: Headers = {}) => {
      answered(false, waitIn(headers));
      duplex.end(refusalOf(status, headers));
      finish();
    },
    answerRaw: (bytes: string) => {
      answered(false);
      duplex.end(bytes);
      finish();
    },
    reset: () => {
      answered(false);
      resetSocket(duplex);
      finish();
    },
    /** Resolves with the stream once it's open, or with `undefined` if it failed. */
    done,
  };
};

export type Stream = ReturnType<typeof streamOver>;

/** The service's end of an open connection. */
const streamOver = ({ subscription, socket, duplex, head, see }: Handshake) => {
  let seq = 0;
  let isClosed = false;
  let isMute = false;
  const frames = (count: number, bytes: number) =>
    Array.from({ length: count }, () => {
      seq += 1;
      see({ what: 'sent', socket, seq });
      return wsFrame(seq % 3 === 0 ? 2 : 1, numberedPayload({ subscription, socket, seq }, bytes));
    });
  const cut = () => see({ what: 'cut', socket });

  clientFrames(duplex, head, (opcode, payload) => {
    see({ what: 'client-frame', socket, opcode });
    if (isMute) return;
    if (opcode === 9) duplex.write(pong(payload));
    if (opcode === 8) duplex.end(isClosed ? Buffer.alloc(0) : close(1000));
  });

  return {
    subscription,
    duplex,
    get isClosed() {
      return isClosed;
    },
    /** Sends numbered frames in one write. @param bytes - the size of each frame */
    push: (count: number, bytes = 0) => void duplex.write(Buffer.concat(frames(count, bytes))),
    close: (code: number | undefined, reason: string, count = 0) => {
      duplex.write(Buffer.concat([...frames(count, 0), close(code, reason)]));
      isClosed = true;
      see({ what: 'closed', socket });
    },
    breakFraming: (bytes: Buffer) => {
      cut();
      duplex.write(bytes);
    },
    reset: () => {
      cut();
      resetSocket(duplex);
    },
    /** Ends the TCP connection without a close frame. */
    end: () => {
      duplex.end();
      see({ what: 'closed', socket });
    },
    /** Stops answering, pings included. */
    mute: () => {
      cut();
      isMute = true;
    },
    gone: new Promise<void>((resolve) => duplex.once('close', () => resolve())),
  };
};

/** Ends a connection abruptly: with RST, or with `destroy` for TLS, because a TLS socket can't send RST. */
const resetSocket = (socket: Socket): void => {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
};
