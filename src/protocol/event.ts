import type { Verdict } from './failures/meanings.js';
import type { TradeFeedError } from './failures/trade-feed-error.js';
import type { Feed } from './feed.js';
import type { AnyFrame, Frame } from './frame.js';
import { isTime } from './type-guards.js';

/** A ticket is being requested (contract, section 4.1): an attempt begins. */
export interface TicketRequested {
  readonly type: 'ticket-requested';
  /** When, in epoch ms. */
  readonly at: number;
  /** The requested feed. */
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
  /** The number of the connection within this subscription: 1, 2, … */
  readonly connection: number;
}

/** An attempt ended, with or without an open connection, and another one follows. */
export interface Disconnected {
  readonly type: 'disconnected';
  /** When, in epoch ms. */
  readonly at: number;
  /** The failure that ended it. `failure.stage` is `stream` if a connection was open. */
  readonly failure: TradeFeedError;
}

/** The wait before the next attempt begins. */
export interface Reconnecting {
  readonly type: 'reconnecting';
  /** When, in epoch ms. */
  readonly at: number;
  /** How long the wait is, from `at` on, in ms. Over a relay `at` is the time of the stream, earlier than now. */
  readonly delayMs: number;
  /** The number of this reconnect since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** The verdict of the failure. */
  readonly verdict: Verdict;
}

/**
 * Frames may be missing here: the service replays nothing (contract, section 6). Emitted after `opened` and before the
 * first frame of the new connection, never before the first connection. A relay and a worker also emit it in place of
 * frames that they dropped; `from` and `to` are then the time range of these frames.
 */
export interface Gap {
  readonly type: 'gap';
  /** The end of the last open connection, in epoch ms; for a stalled one, when the last bytes arrived. */
  readonly from: number;
  /** The opening of this connection, in epoch ms. */
  readonly to: number;
  /** The length of the gap in ms. */
  readonly durationMs: number;
  /** The failure that began the outage. */
  readonly failure: TradeFeedError;
  /** How many frames are missing: known if a relay or a worker dropped them, never for an outage of the service. */
  readonly missed?: number;
}

/**
 * The feed has stopped. This is the last event before the Observable errors with the same failure. `retry` hides the
 * error from the operators after it, but they receive this event: the outage lasts until the next `opened`.
 */
export interface Stopped {
  readonly type: 'stopped';
  /** When, in epoch ms. */
  readonly at: number;
  /** The failure that the Observable errors with. */
  readonly failure: TradeFeedError;
}

/**
 * All events before `at` were emitted. Sources that delay frames emit it: a relay and a worker send it with each batch,
 * and at least every quarter of a second on a quiet feed. If a source emits watermarks, only they close windows, not
 * the clock. A direct feed emits no watermarks, and `tradeFeed$` and `frames()` never emit them.
 *
 * A custom source that delays frames should emit it as well.
 */
export interface Watermark {
  readonly type: 'watermark';
  /** In epoch ms, by the clock of `receivedAt`. */
  readonly at: number;
}

/**
 * Another replica of a cluster owns the connection now. `opened` and a `gap` with the code `owner-changed` follow. Only
 * a cluster emits it.
 */
export interface OwnerChanged {
  readonly type: 'owner-changed';
  /** When its first message was sent, in epoch ms by the clock of the owner. */
  readonly at: number;
  /** The id of the replica. */
  readonly owner: string;
  /** The number of the ownership. It grows with each change. */
  readonly generation: number;
}

/** What a replica of a cluster needs from its engine. */
export type EngineOperation = 'connect' | 'read' | 'write' | 'publish' | 'subscribe' | 'request';

/**
 * The engine of a cluster refuses what this replica needs, or doesn't answer. Emitted once it has lasted a second, then
 * with a backoff of up to a minute, until {@link EngineRecovered}. Only a cluster emits it. A relay never sends it to a
 * page: the message is text of other code.
 */
export interface EngineRefused {
  readonly type: 'engine-refused';
  /** When, in epoch ms. */
  readonly at: number;
  /** When it failed first, in epoch ms. */
  readonly since: number;
  /** What the replica was doing. */
  readonly operation: EngineOperation;
  /** The message of the engine, on one line. For the log of the operator, never for a page. */
  readonly message: string;
  /** What to do about it, in one sentence for a person. */
  readonly advice: string;
}

/** Everything that the engine refused works again. Emitted only after {@link EngineRefused}. */
export interface EngineRecovered {
  readonly type: 'engine-recovered';
  /** When, in epoch ms. */
  readonly at: number;
  /** How long the engine refused something, in ms. */
  readonly durationMs: number;
}

/** The events that only a cluster emits. */
export type ClusterEvent = OwnerChanged | EngineRefused | EngineRecovered;

/** Returns whether only a cluster emits an event. Such an event must not leave the server. */
export const isClusterEvent = <E extends { readonly type: string }>(event: E): event is E & ClusterEvent =>
  event.type === 'owner-changed' || event.type === 'engine-refused' || event.type === 'engine-recovered';

/** Every event of a feed except frames. */
export type LifecycleEvent =
  TicketRequested | TicketIssued | Opened | Disconnected | Reconnecting | Gap | Stopped | Watermark;

/** Every event except frames, also of a cluster. */
export type ClusterLifecycleEvent = LifecycleEvent | ClusterEvent;

/**
 * The frames and lifecycle events that `tradeFeedEvents$` emits, in order. Their `type` distinguishes them.
 *
 * A failure that stops the feed is the Observable's error, after the event `stopped`. No event contains a secret.
 */
export type FeedEvent = LifecycleEvent | Frame;

/** An event of any source. The payload of a frame from a relay is a `Uint8Array`. */
export type RelayedEvent = LifecycleEvent | AnyFrame;

/**
 * A value that an operator on the server created from the feed, received over a relay (`select`).
 *
 * @example
 * ```ts
 * import { type RelayedValue, relayFeed$ } from 'rx-trade-feed/browser';
 *
 * interface Price {
 *   readonly symbol: string;
 *   readonly price: number;
 * }
 *
 * relayFeed$<Price>('https://app.example.com/prices').subscribe((event) => {
 *   if (event.type === 'value') show(event);
 * });
 * const show = ({ at, value }: RelayedValue<Price>) => console.log(new Date(at), value.symbol, value.price);
 * ```
 */
export interface RelayedValue<T> {
  readonly type: 'value';
  /** In epoch ms: the time of the frame or event that caused the value, or the end of the window. Never decreases. */
  readonly at: number;
  /** The value that the operator emitted, after JSON: an instance of a class is a plain object here. */
  readonly value: T;
}

/** Returns whether a value is a {@link RelayedValue}, not a frame, an event or another item. */
export const isRelayedValue = (value: unknown): value is RelayedValue<unknown> => {
  const { type, at } = Object(value) as Partial<Record<'type' | 'at', unknown>>;
  return type === 'value' && isTime(at) && Object.hasOwn(value as object, 'value');
};
