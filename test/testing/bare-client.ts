import type { EventEmitter } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { filter, firstValueFrom, ReplaySubject, take, toArray } from 'rxjs';
import { Agent, request } from 'undici';
import WebSocket from 'ws';
import type { ServiceEvent, TradeFeedService } from 'rx-trade-feed/testing';
import { portOf } from '../support/gate.js';

/** A ticket response whose form the tests check. */
export interface BareTicket {
  readonly ticket: string;
  readonly token_type: string;
  readonly expires_at: string;
  readonly wss_url: string;
  readonly feed: string;
  readonly subprotocol: string;
}

/** An HTTP answer with a parsed body. */
export interface BareAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

/** Returns the code of the default error body. */
export const errorCode = ({ body }: BareAnswer): unknown => (body as { error: { code: unknown } }).error.code;

/** Returns the status of a refusal, and the code of the default error body. */
export const refusalOf = (answer: BareAnswer): readonly [status: number, code: unknown] => [
  answer.status,
  errorCode(answer),
];

/** Waits for `close`, even after an error. `once` of `node:events` would reject at the error. */
export const closeOf = (emitter: EventEmitter): Promise<unknown[]> =>
  new Promise((resolve) => {
    emitter.on('error', () => undefined);
    emitter.once('close', (...details: unknown[]) => {
      resolve(details);
    });
  });

/** Sends one HTTP request over a separate connection. */
export const send = async (
  url: string,
  { ca, ...options }: Parameters<typeof request>[1] & { readonly ca?: string } = {},
): Promise<BareAnswer> => {
  const dispatcher = new Agent({ pipelining: 0, ...(ca === undefined ? {} : { connect: { ca } }) });
  const { statusCode, headers, body } = await request(url, { ...options, dispatcher });
  const text = await body.text();
  await dispatcher.close();
  return { status: statusCode, headers, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
};

/** Sends a ticket request. */
export const postTicket = (
  { baseUrl }: TradeFeedService,
  apiKey?: string,
  body?: unknown,
  ca?: string,
): Promise<BareAnswer> =>
  send(`${baseUrl}/v1/wss/tickets`, {
    method: 'POST',
    headers: {
      ...(apiKey === undefined ? {} : { 'X-API-Key': apiKey }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(ca === undefined ? {} : { ca }),
  });

/** Requests a ticket, and expects to get it. */
export const takeTicket = async (
  service: TradeFeedService,
  apiKey: string,
  feed?: string,
  ca?: string,
): Promise<BareTicket> => {
  const { status, body } = await postTicket(service, apiKey, feed === undefined ? undefined : { feed }, ca);
  if (status !== 200) throw new Error(`The ticket was refused with ${status}.`);
  return body as BareTicket;
};

/** A plain ws client that stores all received data from the first byte on. */
export interface BareSocket {
  readonly ws: WebSocket;
  readonly messages: { readonly data: Buffer; readonly isBinary: boolean }[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Returns the first `count` messages as text, once they have arrived. */
  first(count: number): Promise<string[]>;
}

/** The parts of a handshake, by default from the ticket. */
export interface HandshakeOptions {
  readonly url?: string;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly ca?: string;
}

/** Attempts a handshake. Returns the open socket or the refusal. */
export const tryHandshake = async (
  { ticket, wss_url, subprotocol }: Pick<BareTicket, 'ticket' | 'wss_url' | 'subprotocol'>,
  { url = wss_url, protocols = [subprotocol], headers, ca }: HandshakeOptions = {},
): Promise<BareSocket | BareAnswer> => {
  const ws = new WebSocket(url, [...protocols], {
    headers: headers ?? { Authorization: `Bearer ${ticket}` },
    perMessageDeflate: false,
    ...(ca === undefined ? {} : { ca }),
  });
  const messages: BareSocket['messages'] = [];
  const arrived = new ReplaySubject<string>();
  ws.on('message', (data: Buffer, isBinary) => {
    messages.push({ data, isBinary });
    arrived.next(data.toString());
  });
  const closed = closeOf(ws).then(([code, reason]) => ({ code: Number(code), reason: String(reason) }));
  return new Promise((resolve) => {
    ws.on('open', () => {
      resolve({ ws, messages, closed, first: (count) => firstValueFrom(arrived.pipe(take(count), toArray())) });
    });
    ws.on('unexpected-response', (outgoing, response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        outgoing.destroy();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: text === '' ? undefined : (JSON.parse(text) as unknown),
        });
      });
    });
  });
};

/** Performs a handshake that should succeed. */
export const openSocket = async (ticket: BareTicket, options?: HandshakeOptions): Promise<BareSocket> => {
  const result = await tryHandshake(ticket, options);
  if ('status' in result) throw new Error(`The handshake was refused with ${result.status}.`);
  return result;
};

/** Performs a handshake that should be refused. */
export const refusedHandshake = async (
  ticket: Pick<BareTicket, 'ticket' | 'wss_url' | 'subprotocol'>,
  options?: HandshakeOptions,
): Promise<BareAnswer> => {
  const result = await tryHandshake(ticket, options);
  if ('status' in result) return result;
  result.ws.terminate();
  throw new Error('The handshake was not refused.');
};

/** Requests a ticket and opens a connection with it. */
export const connectAs = async (
  service: TradeFeedService,
  apiKey: string,
  feed?: string,
  ca?: string,
): Promise<BareSocket> => openSocket(await takeTicket(service, apiKey, feed, ca), { ...(ca !== undefined && { ca }) });

/** Opens a connection for a new account. */
export const connectNew = (service: TradeFeedService, feed?: string, ca?: string): Promise<BareSocket> =>
  connectAs(service, service.createAccount().createApiKey(), feed, ca);

/** Waits for the next event of a type. */
export const nextEvent = <T extends ServiceEvent['type']>(
  { events$ }: TradeFeedService,
  type: T,
): Promise<Extract<ServiceEvent, { type: T }>> =>
  firstValueFrom(events$.pipe(filter((event): event is Extract<ServiceEvent, { type: T }> => event.type === type)));

/** Records all events of a service from now on. */
export const recordEvents = ({ events$ }: TradeFeedService): ServiceEvent[] => {
  const events: ServiceEvent[] = [];
  events$.subscribe((event) => events.push(event));
  return events;
};

/** Connects to a service over TCP. Ignores errors of the socket. */
export const connectTo = ({ baseUrl }: Pick<TradeFeedService, 'baseUrl'>, options?: Partial<NetConnectOpts>): Socket =>
  connect({ ...options, port: portOf(baseUrl), host: '127.0.0.1' })
    .setNoDelay()
    .on('error', () => undefined);

/** Sends raw bytes over TCP. Returns all received bytes once the service has closed the connection. */
export const sendRaw = async (service: TradeFeedService, ...lines: string[]): Promise<string> => {
  const socket = connectTo(service);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  const closed = closeOf(socket);
  socket.write([...lines, '', ''].join('\r\n'));
  await closed;
  return text;
};

/** Returns the lines of a valid handshake with some changes. */
export const handshakeLines = (
  ticket: string,
  changes: Readonly<Record<string, string | undefined>> = {},
  target = 'GET /ws',
): string[] => {
  const headers: Record<string, string | undefined> = {
    Host: '127.0.0.1',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    Authorization: `Bearer ${ticket}`,
    ...changes,
  };
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return [`${target} HTTP/1.1`, ...lines];
};

/** A TCP connection with an accepted handshake, over which a test can send anything. */
export interface RawSocket {
  readonly socket: Socket;
  /** All received bytes, once the connection is closed. */
  readonly received: Promise<Buffer>;
}

/** Opens a data connection over plain TCP. */
export const openRaw = async (
  service: TradeFeedService,
  { ticket, subprotocol }: BareTicket,
  options: { readonly allowHalfOpen?: boolean } = {},
): Promise<RawSocket> => {
  const socket = connectTo(service, options);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const received = closeOf(socket).then(() => Buffer.concat(chunks));
  const accepted = nextEvent(service, 'handshake-accepted');
  socket.write([...handshakeLines(ticket, { 'Sec-WebSocket-Protocol': subprotocol }), '', ''].join('\r\n'));
  await accepted;
  return { socket, received };
};
