import type { FeedEvent, TradeFeedError } from 'rx-trade-feed';

/** What a subscription or the service has observed. */
export type Observation =
  | { readonly what: 'subscribed' }
  | { readonly what: 'event'; readonly event: Lifecycle }
  | { readonly what: 'frame'; readonly connection: number; readonly payload: Numbered | undefined }
  /** The Observable's error: a failure of the feed or of the consumer. */
  | { readonly what: 'errored'; readonly error: unknown }
  | { readonly what: 'unsubscribed' }
  | { readonly what: 'ticket-request'; readonly request: Request }
  | { readonly what: 'ticket-answered'; readonly ticket?: Issued; readonly retryAfterMs?: number }
  | { readonly what: 'handshake'; readonly request: Request; readonly socket: number }
  | { readonly what: 'handshake-answered'; readonly isOpen: boolean; readonly retryAfterMs?: number }
  | { readonly what: 'sent'; readonly socket: number; readonly seq: number }
  /** Frames may get lost from here on: the connection was reset, or nothing reads it any more. */
  | { readonly what: 'cut'; readonly socket: number }
  /** The service sent its close frame. */
  | { readonly what: 'closed'; readonly socket: number }
  | { readonly what: 'client-frame'; readonly socket: number; readonly opcode: number }
  /** The service has noticed that the socket is closed. */
  | { readonly what: 'gone'; readonly socket: number }
  /** Nothing is in transit any more. */
  | { readonly what: 'settled' };

/** One entry in the log of what was observed. Times are ms of one monotonic clock. */
export type Seen = Observation & { readonly at: number };

export type Lifecycle = Exclude<FeedEvent, { readonly type: 'frame' }>;
export type Failed = Extract<Lifecycle, { readonly failure: TradeFeedError }>;

export interface Request {
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export interface Issued {
  readonly ticket: string;
  readonly path: string;
  readonly subprotocol: string;
}

/** The content of a frame: the subscription, the socket, and the sequence number on that socket. */
export interface Numbered {
  readonly subscription: number;
  readonly socket: number;
  readonly seq: number;
}

/** What the rules need to know about the subscription. */
export interface Subscribed {
  readonly subscription: number;
  readonly apiKey: string;
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly stableAfterMs: number;
  /** How early a timer may fire, in ms: 0 in virtual time. */
  readonly earlyMs: number;
  /** Whether the consumer threw an error. */
  readonly isOwnError: (error: unknown) => boolean;
}

/** Creates a payload that names its subscription, and in which every changed byte is visible. @param bytes - the minimum length */
export const numberedPayload = ({ subscription, socket, seq }: Numbered, bytes = 0): string => {
  const head = `${subscription}:${socket}:${seq}:${bytes}:`;
  return head.padEnd(bytes, String((seq * 7919 + socket * 31 + subscription) % 1_000_003));
};

/** Reads a numbered payload. Returns `undefined` if any byte differs. */
export const readNumbered = (payload: string): Numbered | undefined => {
  const [subscription, socket, seq, bytes] = payload.split(':', 4).map(Number);
  const numbered = { subscription: subscription ?? NaN, socket: socket ?? NaN, seq: seq ?? NaN };
  return payload === numberedPayload(numbered, bytes) ? numbered : undefined;
};
