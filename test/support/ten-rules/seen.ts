import type { FeedEvent, TradeFeedError } from 'rx-trade-feed';

/** What one subscription and the service that it talks to were seen to do, in the order in which it was seen. Times in ms on one monotonic clock. */
export type Seen =
  | { readonly what: 'subscribed'; readonly at: number }
  | { readonly what: 'event'; readonly at: number; readonly event: Lifecycle }
  | { readonly what: 'frame'; readonly at: number; readonly connection: number; readonly payload: Numbered | undefined }
  /** The Observable's error: a failure, or the consumer's own. */
  | { readonly what: 'errored'; readonly at: number; readonly error: unknown }
  | { readonly what: 'unsubscribed'; readonly at: number }
  | { readonly what: 'ticket-request'; readonly at: number; readonly request: Request }
  | { readonly what: 'ticket-answered'; readonly at: number; readonly ticket?: Issued; readonly retryAfterMs?: number }
  | { readonly what: 'handshake'; readonly at: number; readonly request: Request; readonly socket: number }
  | {
      readonly what: 'handshake-answered';
      readonly at: number;
      readonly isOpen: boolean;
      readonly retryAfterMs?: number;
    }
  | { readonly what: 'sent'; readonly at: number; readonly socket: number; readonly seq: number }
  /** Bytes that were sent may be lost from here on: it was reset, or nobody reads any more. */
  | { readonly what: 'cut'; readonly at: number; readonly socket: number }
  /** The service sent its close frame. */
  | { readonly what: 'closed'; readonly at: number; readonly socket: number }
  /** A WebSocket frame from the client. */
  | { readonly what: 'client-frame'; readonly at: number; readonly socket: number; readonly opcode: number }
  /** The socket is gone, as the service sees it. */
  | { readonly what: 'gone'; readonly at: number; readonly socket: number }
  /** Nothing is on its way any more. */
  | { readonly what: 'settled'; readonly at: number };

export type Lifecycle = Exclude<FeedEvent, { readonly type: 'frame' }>;
export type Failed = Extract<Lifecycle, { readonly failure: TradeFeedError }>;

/** A request as it came. */
export interface Request {
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

/** A ticket as it was given out. */
export interface Issued {
  readonly ticket: string;
  readonly path: string;
  readonly subprotocol: string;
}

/** What a frame says of itself: whose it is, over which socket it was sent, and the how-manieth there. */
export interface Numbered {
  readonly subscription: number;
  readonly socket: number;
  readonly seq: number;
}

/** Facts of the subscription that the rules need. */
export interface Subscribed {
  readonly subscription: number;
  readonly apiKey: string;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly stableAfterMs: number;
  /** By how much a timer may be early: 0 on virtual time. */
  readonly earlyMs: number;
  /** What the consumer itself throws, to be told from failures. */
  readonly isOwnError: (error: unknown) => boolean;
}
