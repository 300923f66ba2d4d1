import type { Verdict } from './failures/failure-code.js';
import type { TradeFeedError } from './failures/trade-feed-error.js';
import type { Feed } from './feed.js';
import type { AnyFrame, Frame } from './frame.js';

/** A ticket is being requested (contract, section 4.1): an attempt begins. */
export interface TicketRequested {
  readonly type: 'ticket-requested';
  /** When, in epoch ms. */
  readonly at: number;
  /** The feed that is asked for. */
  readonly feed: Feed;
}

/** A ticket was issued; the handshake follows at once. The ticket itself is not shown. */
export interface TicketIssued {
  readonly type: 'ticket-issued';
  /** When, in epoch ms. */
  readonly at: number;
  /** The feed that the service selected. */
  readonly feed: Feed;
  /** The service's deadline for the handshake: an RFC 3339 timestamp. */
  readonly expiresAt: string;
}

/** The connection is open; frames follow (contract, section 4.2). */
export interface Opened {
  readonly type: 'opened';
  /** When, in epoch ms. */
  readonly at: number;
  readonly feed: Feed;
  /** Which connection of this subscription: 1, 2, … */
  readonly connection: number;
}

/** An attempt ended, whether or not it had opened a connection, and another one follows. */
export interface Disconnected {
  readonly type: 'disconnected';
  /** When, in epoch ms. */
  readonly at: number;
  /** What ended it; `failure.stage` is `stream` when a connection was open. */
  readonly failure: TradeFeedError;
}

/** The wait before the next attempt begins. */
export interface Reconnecting {
  readonly type: 'reconnecting';
  /** When, in epoch ms. */
  readonly at: number;
  /** How long the wait is, in ms. */
  readonly delayMs: number;
  /** Which reconnect this is since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** What the failure asked for. */
  readonly verdict: Verdict;
}

/**
 * Frames may be missing here: the service replays nothing (contract, section 6). Emitted after `opened` and before the first
 * frame of the new connection, never before the first connection. Over a relay, and out of a worker, also where frames had to go by.
 */
export interface Gap {
  readonly type: 'gap';
  /** The end of the last open connection, in epoch ms; for a stalled one, when it was last heard. */
  readonly from: number;
  /** The opening of this connection, in epoch ms. */
  readonly to: number;
  /** The length of the gap in ms. */
  readonly durationMs: number;
  /** The failure that began the outage. */
  readonly failure: TradeFeedError;
  /** How many frames are missing, where that is known: of what a relay or a worker let go by, never of an outage of the service. */
  readonly missed?: number;
}

/**
 * The feed has stopped: the last event before the Observable errors with the same failure. Operators after a `retry` receive it,
 * so they know that an outage lasts until the next `opened`.
 */
export interface Stopped {
  readonly type: 'stopped';
  /** When, in epoch ms. */
  readonly at: number;
  /** The failure that the Observable errors with. */
  readonly failure: TradeFeedError;
}

/**
 * All events before `at` were emitted. Sources that delay frames emit it: a relay and a worker send it with each batch, and at least every
 * quarter of a second on a quiet feed. Only watermarks close the windows over such a source. A feed that is received directly emits
 * none, and `tradeFeed$` and `frames()` never show it.
 *
 * A custom source that delays frames should emit it as well.
 */
export interface Watermark {
  readonly type: 'watermark';
  /** In epoch ms, by the clock of `receivedAt`. */
  readonly at: number;
}

/** Everything but the frames. */
export type LifecycleEvent =
  TicketRequested | TicketIssued | Opened | Disconnected | Reconnecting | Gap | Stopped | Watermark;

/**
 * What `tradeFeedEvents$` emits: the frames and what happens around them, in order, distinguished by `type`.
 *
 * A failure that stops the feed is the Observable's error, after the event `stopped`. No event holds a secret.
 */
export type FeedEvent = LifecycleEvent | Frame;

/** The same, received over a relay: the payload is a `Uint8Array`. */
export type RelayedEvent = LifecycleEvent | AnyFrame;
