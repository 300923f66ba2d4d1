import { afterEach } from '@jest/globals';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Subject, type Subscription } from 'rxjs';
import { relayFeed$, type RelayFeedOptions, type ResumeStore } from '../../src/browser/index.js';
import type { LifecycleEvent, RelayedEvent } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { createRelay, relayHandler, type RelayHandlerOptions, type RelayOptions } from '../../src/relay/index.js';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { frame, isFrame, isLifecycle, Source, Web } from '../relay/support.js';
import { waitFor } from '../support/wait-for.js';

export type Step = (response: ServerResponse, request: IncomingMessage) => void;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Calls these at the end of the test, last one first. */
export const atEnd = (...actions: readonly (() => unknown)[]): void => void closing.push(...actions);

/** Starts a server, until the end of the test, that answers the n-th request by the n-th step; the last one repeats. */
export const serve = async (...steps: readonly Step[]): Promise<Web> => {
  let n = 0;
  const web = await Web.start((request, response) => {
    n += 1;
    steps[Math.min(n, steps.length) - 1]!(response, request);
  });
  atEnd(() => web[Symbol.asyncDispose]());
  return web;
};

/** Serves a relay of a feed on loopback, until the end of the test. */
export const serveFeed = async (
  events$: Parameters<typeof createRelay>[0],
  options: RelayOptions = {},
  handler: Partial<RelayHandlerOptions> = {},
  port?: number,
) => {
  const relay = createRelay(events$, { batchMs: 0, ...options });
  const web = await Web.start(relayHandler(relay, { authorize: () => true, ...handler }), port);
  atEnd(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  const clients = () => relay.status().clients.length;
  return { relay, web, clients, hasClients: (count: number) => waitFor(() => clients() === count) };
};

/** Serves a relay, and its source. */
export const serveRelay = async (...[options, handler, port]: ServeArguments) => {
  const source = new Source();
  return { source, ...(await serveFeed(source.events$, options, handler, port)) };
};
type ServeArguments = [options?: RelayOptions, handler?: Partial<RelayHandlerOptions>, port?: number];

/** Replaces `fetch` until the end of the test: answers with a stream. */
export const withoutNetwork = () => {
  // There's no network, so written bytes arrive in the next turn of the event loop.
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const { fetch } = globalThis;
  atEnd(() => (globalThis.fetch = fetch));
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  globalThis.fetch = () => {
    const bytes = new ReadableStream<Uint8Array>({ start: (controller) => (body = controller) });
    return Promise.resolve(new Response(bytes, { headers: { 'content-type': 'text/event-stream' } }));
  };
  const write = async (text: string) => {
    body!.enqueue(new TextEncoder().encode(text));
    await turn();
  };
  return { turn, write };
};

/** A `sessionStorage`; a duplicated tab has a copy. */
export class Store implements ResumeStore {
  readonly items;
  constructor(items: Iterable<readonly [string, string]> = []) {
    this.items = new Map(items);
  }
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.items.set(key, value);
  }
}

/** Answers like a relay, with this text. */
export const stream =
  (text: string): Step =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text);
  };

/** Answers like a relay, with this text, then ends the answer. */
export const ended =
  (text: string): Step =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
  };

/** Answers with a status. */
export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}, body = 'x'): Step =>
  (response) => {
    response.writeHead(code, headers).end(body);
  };

/** Never answers. */
export const silence: Step = () => undefined;

export const hello = (at = Date.now(), id = 'le-0.0.0.1'): string => `event: hello\nid: ${id}\ndata: {"at":${at}}\n\n`;

/** Returns the last message of a stream that the relay ends. */
export const connectAgain = (failure: TradeFeedError): string =>
  `event: connect-again\nid: le-0.0.0.1\ndata: ${JSON.stringify(failure)}\n\n`;

/** Returns a message with events. */
export const message = (id: string, ...events: readonly unknown[]): string =>
  `id: ${id}\n${events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n`).join('')}\n`;

export const frameLineOf = (text: string | number, at?: number): string => writeFrame(frame(text, at));

/** Short delays, no jitter. */
export const quick: RelayFeedOptions = { backoff: { initialDelayMs: 1, maxDelayMs: 5, jitter: 'none' } };

/** Records the events of one subscription. */
export class Receiver {
  readonly events: RelayedEvent[] = [];
  error: TradeFeedError | undefined;
  readonly watermarks: number[] = [];
  isComplete = false;
  readonly subscription: Subscription;
  readonly #changes = new Subject<void>();

  constructor(url: string | URL, options: RelayFeedOptions = {}) {
    this.subscription = relayFeed$(url, { ...quick, ...options }).subscribe({
      next: (event) => {
        if (event.type === 'watermark') this.watermarks.push(event.at);
        else this.events.push(event);
        this.#changes.next();
      },
      error: (error: TradeFeedError) => {
        this.error = error;
        this.#changes.complete();
      },
      complete: () => {
        this.isComplete = true;
        this.#changes.complete();
      },
    });
  }

  get frames(): readonly AnyFrame[] {
    return this.events.filter(isFrame);
  }

  get texts(): readonly string[] {
    return this.frames.map((frame) => frame.text());
  }

  get lifecycle(): readonly LifecycleEvent[] {
    return this.events.filter(isLifecycle);
  }

  /** The types of the lifecycle events; for `disconnected` the code of the failure. */
  get types(): readonly string[] {
    return this.lifecycle.map((event) => (event.type === 'disconnected' ? event.failure.code : event.type));
  }

  get isOver(): boolean {
    return this.isComplete || this.error !== undefined;
  }

  async until(holds: (receiver: this) => boolean): Promise<this> {
    await waitFor(() => holds(this), { on: this.#changes });
    return this;
  }

  /** Waits for the end of the feed. */
  async over(): Promise<this> {
    return this.until(({ isOver }) => isOver);
  }
}

/** Subscribes until the end of the test. */
export const receive = (...args: ConstructorParameters<typeof Receiver>): Receiver => {
  const receiver = new Receiver(...args);
  atEnd(() => receiver.subscription.unsubscribe());
  return receiver;
};
