import type { EventEmitter } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { filter, firstValueFrom, ReplaySubject, take, toArray } from 'rxjs';
import { Agent, request } from 'undici';
import WebSocket from 'ws';
import type { ServiceEvent, TradeFeedService } from 'rx-trade-feed/testing';
import type { WireTicket } from '../../src/protocol/contract.js';
import { portOf } from '../support/gate.js';

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
  return { status: statusCode, headers, body: parsed(text) };
};
const parsed = (text: string): unknown => (text === '' ? undefined : JSON.parse(text));

/** Sends a ticket request. */
export const postTicket = ({ baseUrl }: TradeFeedService, apiKey?: string, body?: unknown, ca?: string) =>
  send(`${baseUrl}/v1/wss/tickets`, {
    method: 'POST',
    headers: {
      ...(apiKey !== undefined && { 'X-API-Key': apiKey }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(ca !== undefined && { ca }),
  });

/** Requests a ticket, and expects to get it. */
export const takeTicket = async (service: TradeFeedService, apiKey: string, feed?: string, ca?: string) => {
  const { status, body } = await postTicket(service, apiKey, feed && { feed }, ca);
  if (status !== 200) throw new Error(`The ticket was refused with ${status}.`);
  return body as WireTicket;
};

/** The parts of a handshake, by default from the ticket. */
export interface HandshakeOptions {
  readonly url?: string;
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly ca?: string;
}

type Credentials = Pick<WireTicket, 'ticket' | 'wss_url' | 'subprotocol'>;

/** A plain ws client that stores all received data from the first byte on. */
const startClient = (
  { ticket, wss_url, subprotocol }: Credentials,
  { url = wss_url, protocols = [subprotocol], headers, ca }: HandshakeOptions = {},
) => {
  const ws = new WebSocket(url, [...protocols], {
    headers: headers ?? { Authorization: `Bearer ${ticket}` },
    perMessageDeflate: false,
    ...(ca !== undefined && { ca }),
  });
  const messages: { readonly data: Buffer; readonly isBinary: boolean }[] = [];
  const arrived = new ReplaySubject<string>();
  ws.on('message', (data: Buffer, isBinary) => {
    messages.push({ data, isBinary });
    arrived.next(data.toString());
  });
  const closed = closeOf(ws).then(([code, reason]) => ({ code: Number(code), reason: String(reason) }));
  /** Returns the first `count` messages as text, once they have arrived. */
  const first = (count: number) => firstValueFrom(arrived.pipe(take(count), toArray()));
  return { ws, messages, closed, first };
};

/** Performs a handshake that should succeed. */
export const openSocket = async (ticket: WireTicket, options?: HandshakeOptions) => {
  const client = startClient(ticket, options);
  await new Promise((resolve, reject) => client.ws.on('open', resolve).on('error', reject));
  return client;
};

/** Performs a handshake that should be refused. */
export const refusedHandshake = async (ticket: Credentials, options?: HandshakeOptions): Promise<BareAnswer> => {
  const { ws } = startClient(ticket, options);
  return new Promise((resolve, reject) => {
    ws.on('open', () => {
      ws.terminate();
      reject(new Error('The handshake was not refused.'));
    });
    ws.on('unexpected-response', (outgoing, response) => {
      void readText(response).then((text) => {
        outgoing.destroy();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: parsed(text) });
      });
    });
  });
};

/** Requests a ticket and opens a connection with it. */
export const connectAs = async (service: TradeFeedService, apiKey: string, feed?: string, ca?: string) =>
  openSocket(await takeTicket(service, apiKey, feed, ca), { ...(ca !== undefined && { ca }) });

/** Opens a connection for a new account. */
export const connectNew = (service: TradeFeedService, feed?: string, ca?: string) =>
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

/** Returns all received bytes once the connection is closed. */
export const receivedBy = async (socket: Socket): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await closeOf(socket);
  return Buffer.concat(chunks);
};

/** Sends raw bytes over TCP. Returns all received bytes once the service has closed the connection. */
export const sendRaw = async (service: TradeFeedService, ...lines: string[]): Promise<string> => {
  const socket = connectTo(service);
  socket.write([...lines, '', ''].join('\r\n'));
  return (await receivedBy(socket)).toString('latin1');
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

/** Opens a data connection over plain TCP, over which a test can send anything. */
export const openRaw = async (
  service: TradeFeedService,
  { ticket, subprotocol }: WireTicket,
  options?: Partial<NetConnectOpts>,
) => {
  const socket = connectTo(service, options);
  const received = receivedBy(socket);
  const accepted = nextEvent(service, 'handshake-accepted');
  socket.write([...handshakeLines(ticket, { 'Sec-WebSocket-Protocol': subprotocol }), '', ''].join('\r\n'));
  await accepted;
  return { socket, received };
};
