import { expect } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Observable, Subject, VirtualTimeScheduler } from 'rxjs';
import type { LifecycleEvent, RelayedEvent, RelayedValue } from '../../src/protocol/event.js';
import { type AnyFrame, Frame } from '../../src/protocol/frame.js';
import {
  createRelay,
  type Relay,
  type RelayActivity,
  type RelayMessage,
  type RelayOptions,
  type RelayReceiver,
} from '../../src/relay/index.js';

/** A virtual clock: `pass` moves it forward. */
export class Clock {
  readonly scheduler = new VirtualTimeScheduler(undefined, 0);

  constructor(at = 1_000_000) {
    this.scheduler.frame = at;
  }

  get now(): number {
    return this.scheduler.frame;
  }

  pass(ms: number): void {
    const to = this.now + ms;
    this.scheduler.maxFrames = to;
    this.scheduler.flush();
    this.scheduler.frame = to;
  }
}

/** A response whose buffer the test fills and drains. */
export class Response extends EventEmitter {
  writableNeedDrain = false;
  isDestroyed = false;

  readonly fill = (): void => {
    this.writableNeedDrain = true;
  };

  drain(): void {
    this.writableNeedDrain = false;
    this.emit('drain');
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

/** Records the messages of one client. */
export class Client {
  readonly messages: RelayMessage[] = [];
  isComplete = false;
  error: unknown;
  readonly #subscription;

  constructor(relay: Relay, receiver?: RelayReceiver, onMessage?: (message: RelayMessage) => void) {
    this.#subscription = relay.messages$(receiver).subscribe({
      next: (message) => {
        this.messages.push(message);
        onMessage?.(message);
      },
      error: (error: unknown) => (this.error = error),
      complete: () => (this.isComplete = true),
    });
  }

  leave(): void {
    this.#subscription.unsubscribe();
  }

  /** The messages with events. */
  get batches(): readonly RelayMessage[] {
    return this.messages.filter(({ type }) => type === undefined);
  }

  /** The events in the messages. */
  get events(): readonly WireEvent[] {
    return this.batches.flatMap(eventsIn);
  }

  /** The payloads of the frames. */
  get payloads(): readonly string[] {
    return this.events.flatMap(({ type, data }) => (type === 'frame' ? [data as string] : []));
  }

  get types(): readonly string[] {
    return this.messages.map(({ type }) => type ?? 'events');
  }

  /** The id of the last message. */
  get lastEventId(): string {
    return this.messages.at(-1)!.id;
  }
}

/** An event in the JSON of a message. */
export type WireEvent = Readonly<Record<string, unknown>> & { readonly type: string };

/** Reads the events of a message, without the watermark. */
export const eventsIn = (message: RelayMessage): WireEvent[] =>
  linesIn(message).filter(({ type }) => type !== 'watermark');

/** Reads the watermark of a message. */
export const watermarkIn = (message: RelayMessage): unknown =>
  linesIn(message).find(({ type }) => type === 'watermark')?.['at'];

/** Returns the time of an event: that of the end for a gap. */
export const timeIn = (event: WireEvent): number => (event['receivedAt'] ?? event['to'] ?? event['at']) as number;

/** Checks that times never decrease. */
export const inOrder = (times: readonly number[]): void => expect(times).toEqual(times.toSorted((a, b) => a - b));

const linesIn = ({ data }: RelayMessage): WireEvent[] => data.split('\n').map((line) => JSON.parse(line) as WireEvent);

/** A source that counts its subscriptions. */
export class Source {
  readonly subject = new Subject<RelayedEvent>();
  subscriptions = 0;
  active = 0;
  readonly events$ = new Observable<RelayedEvent>((subscriber) => {
    this.subscriptions += 1;
    this.active += 1;
    subscriber.add(this.subject.subscribe(subscriber));
    subscriber.add(() => (this.active -= 1));
  });

  emit(...events: readonly RelayedEvent[]): void {
    for (const event of events) this.subject.next(event);
  }

  /** Emits frames with these payloads. */
  frames(...payloads: readonly (string | number)[]): void {
    for (const payload of payloads) this.subject.next(frame(payload));
  }
}

/** Creates a relay in virtual time; `reports` are its `events$`. */
export const virtualRelay = (options: RelayOptions = {}) => {
  const clock = new Clock();
  const source = new Source();
  const relay = createRelay(source.events$, { ...options, scheduler: clock.scheduler });
  const reports: RelayActivity[] = [];
  relay.events$.subscribe((event) => reports.push(event));
  const join = (receiver?: RelayReceiver, onMessage?: () => void) => new Client(relay, receiver, onMessage);
  /** Returns a client that has received frames with these payloads, and has left. */
  const visit = (...payloads: readonly (string | number)[]) => {
    const client = join();
    source.frames(...payloads);
    clock.pass(16);
    client.leave();
    return client;
  };
  return { clock, source, relay, reports, join, visit };
};

/** Creates a text frame. */
export const frame = (payload: string | number, receivedAt = 1_000_000, connection = 1): Frame =>
  new Frame('market', Buffer.from(String(payload)), false, receivedAt, connection);

/** Returns the integers from `from` to `to`, inclusive. */
export const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);

/** Returns the fields of a frame, to compare a sent frame with the received one. */
export const essence = ({ feed, connection, receivedAt, isBinary, data }: AnyFrame) => ({
  ...{ feed, connection, receivedAt, isBinary },
  data: Buffer.from(data).toString('hex'),
});

export const isFrame = (event: RelayedEvent | RelayedValue<unknown>): event is AnyFrame => event.type === 'frame';
export const isLifecycle = (event: RelayedEvent): event is LifecycleEvent => event.type !== 'frame';

/** A server on loopback. */
export class Web implements AsyncDisposable {
  readonly requests: IncomingMessage[] = [];
  readonly responses: ServerResponse[] = [];
  readonly sockets = new Set<Socket>();
  readonly #server;

  private constructor(listener: RequestListener) {
    this.#server = createServer((request, response) => {
      this.requests.push(request);
      this.responses.push(response);
      listener(request, response);
    }).on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  static async start(listener: RequestListener, port = 0): Promise<Web> {
    const web = new Web(listener);
    web.#server.listen(port, '127.0.0.1');
    await once(web.#server, 'listening');
    return web;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/feed`;
  }

  /** Resets every connection. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  /** Stops listening, and waits until every connection has ended. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = this.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Sends one request over TCP. The test can pause reading. */
export class Raw {
  readonly socket: Socket;
  text = '';
  #waiting: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => undefined).on('close', () => this.#wake());
    socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1');
      this.#wake();
    });
  }

  static async open(port: number, request: string): Promise<Raw> {
    const socket = connect({ port, host: '127.0.0.1' });
    const raw = new Raw(socket);
    await once(socket, 'connect');
    socket.write(request);
    return raw;
  }

  /** Requests the stream. */
  static get(port: number, headers: Readonly<Record<string, string>> = {}): Promise<Raw> {
    const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map(([k, v]) => `${k}: ${v}\r\n`);
    return Raw.open(port, `GET /feed HTTP/1.1\r\n${lines.join('')}\r\n`);
  }

  /** Waits until the received text matches. */
  async until(isThere: (text: string) => boolean): Promise<string> {
    while (!isThere(this.text)) {
      if (this.socket.destroyed) throw new Error(`The connection closed after: ${this.text.slice(-500)}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.text;
  }

  async closed(): Promise<string> {
    while (!this.socket.destroyed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.text;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
