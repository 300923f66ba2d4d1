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

/** A ticket was issued; the handshake follows at once. The event doesn't contain the ticket. */
export interface TicketIssued {
  readonly type: 'ticket-issued';
  /** When, in epoch ms. */
  readonly at: number;
  /** The feed that the service selected. */
  readonly feed: Feed;
  /** The service's deadline for the handshake: an RFC 3339 timestamp. */
  readonly expiresAt: string;
}

/**
 * The connection is open; frames follow (contract, section 4.2). It may not be complete yet: on the Free plan, the
 * service sends each frame 500 ms late, and what it saw before the handshake never arrives. The {@link Gap} of an outage
 * ends when the connection is complete.
 */
export interface Opened {
  readonly type: 'opened';
  /** When, in epoch ms. */
  readonly at: number;
  readonly feed: Feed;
  /** Counts the connections of this subscription: 1, 2, … */
  readonly connection: number;
  /**
   * From when the connection is complete, in epoch ms, if that is known already: to a late subscriber, to a replica that
   * returns, and if `deliveryDelayMs` is a number. If it's missing, the first frame shows it, or that none arrives for
   * 500 ms.
   */
  readonly completeFrom?: number;
}

/** An attempt ended, whether or not it had opened a connection, and another follows. */
export interface Disconnected {
  readonly type: 'disconnected';
  /** When, in epoch ms. */
  readonly at: number;
  /** The failure that ended it. `failure.stage` is `stream` if a connection was open. */
  readonly failure: TradeFeedError;
}

/** The feed waits before its next attempt. */
export interface Reconnecting {
  readonly type: 'reconnecting';
  /** When, in epoch ms. */
  readonly at: number;
  /** How long it waits, counted from `at`, in ms. Over a relay, `at` is the time of the stream, earlier than now. */
  readonly delayMs: number;
  /** Counts the reconnects since the last stable connection: 1, 2, … */
  readonly attempt: number;
  /** The verdict of the failure. */
  readonly verdict: Verdict;
}

/**
 * Frames may be missing here: the service replays nothing (contract, section 6). Emitted directly before the first
 * frame of the new connection, or 500 ms after `opened` if none has arrived by then; see the option `deliveryDelayMs`.
 * Never before the first connection. If the new connection ends before, its outage goes on, and the gap comes later. A
 * relay or a worker also emits it in place of frames it dropped; `from` and `to` then span the times of those frames.
 */
export interface Gap {
  readonly type: 'gap';
  /** When the last open connection ended, in epoch ms; for a stalled one, when the last bytes arrived. */
  readonly from: number;
  /** From when the new connection is complete, in epoch ms: when it opened, or up to 500 ms later. */
  readonly to: number;
  /** The length of the gap in ms. 0 if frames of a single moment may be missing: such a gap counts like any other. */
  readonly durationMs: number;
  /** The failure that began the outage. */
  readonly failure: TradeFeedError;
  /**
   * How many frames are missing: known if a relay, a worker or a log lost them, never for an outage of the service. If
   * such an outage is part of the loss, this is only a lower bound.
   */
  readonly missed?: number;
}

/**
 * The feed stopped. It's the last event before the Observable errors with the same failure. Operators after `retry`
 * don't see that error, but they do get this event: the outage lasts until the next `opened`.
 */
export interface Stopped {
  readonly type: 'stopped';
  /** When, in epoch ms. */
  readonly at: number;
  /** The failure that the Observable errors with. */
  readonly failure: TradeFeedError;
}

/**
 * All events before `at` were emitted. Sources that delay frames emit it: a relay and a worker send one with each
 * batch, and at least every quarter of a second on a quiet feed. If a source emits watermarks, they close windows
 * instead of the clock. A direct feed has none, and `tradeFeed$` and `frames()` never emit them.
 *
 * If your own source delays frames, emit them too.
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
  /** When its first message was sent, in epoch ms by the owner's clock. */
  readonly at: number;
  /** The replica's id. */
  readonly owner: string;
  /** Grows each time the owner changes. */
  readonly generation: number;
}

/** What a replica of a cluster needs from its engine. */
export type EngineOperation = 'connect' | 'read' | 'write' | 'publish' | 'subscribe' | 'request' | 'store';

/**
 * The cluster's engine refuses what this replica needs, or doesn't answer. Emitted after a second of this, then with a
 * backoff of up to a minute, until {@link EngineRecovered}. Only a cluster emits it. A relay never sends it to a page,
 * because the message is somebody else's text.
 */
export interface EngineRefused {
  readonly type: 'engine-refused';
  /** When, in epoch ms. */
  readonly at: number;
  /** When it failed first, in epoch ms. */
  readonly since: number;
  /** What the replica was doing. */
  readonly operation: EngineOperation;
  /** The engine's message, on one line. For your logs, never for a page. */
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

/** Returns whether an event is one that only a cluster emits. Such an event must not leave the server. */
export const isClusterEvent = <E extends { readonly type: string }>(event: E): event is E & ClusterEvent =>
  event.type === 'owner-changed' || event.type === 'engine-refused' || event.type === 'engine-recovered';

/** Every event of a feed except frames. */
export type LifecycleEvent =
  TicketRequested | TicketIssued | Opened | Disconnected | Reconnecting | Gap | Stopped | Watermark;

/** Every event except frames, including those of a cluster. */
export type ClusterLifecycleEvent = LifecycleEvent | ClusterEvent;

/**
 * What `tradeFeedEvents$` emits: frames and lifecycle events, in order. Branch on their `type`.
 *
 * If a failure stops the feed, the Observable errors with it after the event `stopped`. No event contains a secret.
 */
export type FeedEvent = LifecycleEvent | Frame;

/** An event from any source. A relay's frames carry a `Uint8Array`. */
export type RelayedEvent = LifecycleEvent | AnyFrame;

/**
 * A value that an operator on the server made from the feed and a relay sent (`select`).
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
 * const show = ({ at, value }: RelayedValue<Price>) =>
 *   console.log(new Date(at), value.symbol, value.price);
 * ```
 */
export interface RelayedValue<T> {
  readonly type: 'value';
  /** The time of the frame or event that caused the value, or the end of the window, in epoch ms. Never decreases. */
  readonly at: number;
  /** What the operator emitted, after a trip through JSON: class instances arrive as plain objects. */
  readonly value: T;
}

/** Returns whether a value is a {@link RelayedValue}, not a frame, an event or another item. */
export const isRelayedValue = (value: unknown): value is RelayedValue<unknown> => {
  const { type, at } = Object(value) as Partial<Record<'type' | 'at', unknown>>;
  return type === 'value' && isTime(at) && Object.hasOwn(value as object, 'value');
};
