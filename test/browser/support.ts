import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Subscription } from 'rxjs';
import { relayFeed$, type RelayFeedOptions } from '../../src/browser/index.js';
import type { LifecycleEvent, RelayedEvent } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { isFrame, Web } from '../relay/support.js';
import { waitFor } from '../support/wait-for.js';
import { isLifecycle } from '../relay/support.js';

/** Answers one request. */
export type Step = (response: ServerResponse, request: IncomingMessage) => void;

/** Starts a server that answers the n-th request by the n-th step; the last one repeats. */
export const startSteps = (...steps: readonly Step[]): Promise<Web> => {
  let n = 0;
  const listener: RequestListener = (request, response) => {
    n += 1;
    steps[Math.min(n, steps.length) - 1]!(response, request);
  };
  return Web.start(listener);
};

/** Answers like a relay, with this text. */
export const stream =
  (text: string, headers: Readonly<Record<string, string>> = {}): Step =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
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

export const hello = (at = Date.now(), id = 'e.0.0.1'): string => `event: hello\nid: ${id}\ndata: {"at":${at}}\n\n`;

/** Returns the last message of a stream that the relay ends. */
export const connectAgain = (failure: TradeFeedError): string =>
  `event: connect-again\nid: e.0.0.1\ndata: ${JSON.stringify(failure)}\n\n`;

/** Returns a message with events. */
export const message = (id: string, ...events: readonly unknown[]): string =>
  `id: ${id}\n${events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n`).join('')}\n`;

/** Short waits, no jitter. */
export const quick: RelayFeedOptions = { backoff: { initialDelayMs: 1, maxDelayMs: 5, jitter: 'none' } };

/** Records the events of one subscription. */
export class Receiver {
  readonly events: RelayedEvent[] = [];
  error: TradeFeedError | undefined;
  readonly watermarks: number[] = [];
  isComplete = false;
  readonly subscription: Subscription;

  constructor(
    url: string | URL,
    options: RelayFeedOptions = {},
    onEvent: (event: RelayedEvent) => void = () => undefined,
  ) {
    this.subscription = relayFeed$(url, { ...quick, ...options }).subscribe({
      next: (event) => {
        if (event.type === 'watermark') this.watermarks.push(event.at);
        else this.events.push(event);
        onEvent(event);
      },
      error: (error: TradeFeedError) => (this.error = error),
      complete: () => (this.isComplete = true),
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
    await waitFor(() => holds(this));
    return this;
  }

  /** Waits for the end of the feed. */
  async over(): Promise<this> {
    return this.until(({ isOver }) => isOver);
  }

  /** Waits for the first failure that is retried, then unsubscribes. */
  async firstFailure(): Promise<TradeFeedError> {
    await this.until(({ types, isOver }) => isOver || types.includes('reconnecting'));
    this.subscription.unsubscribe();
    const ended = this.lifecycle.find((event) => event.type === 'disconnected');
    return ended?.failure ?? this.error!;
  }
}
