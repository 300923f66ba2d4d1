import { asyncScheduler, type Observable, type SchedulerLike } from 'rxjs';
import type { PositionedFeed, StoredLine } from '../protocol/place.js';
import {
  anObject,
  aScheduler,
  durationMs,
  positiveCount,
  positiveMs,
  type Rule,
  validated,
} from '../protocol/validate.js';
import type { RelayTopic } from './topic.js';

/** The limits and intervals of a relay. */
export interface RelayOptions {
  /**
   * How many events are stored, for all clients together. A client further behind, or away for longer, receives a gap.
   * @defaultValue 50 000
   */
  readonly capacity?: number | undefined;
  /**
   * How many bytes of events are stored at most, as UTF-8. They're outside the heap.
   * @defaultValue 33 554 432 (32 MiB)
   */
  readonly capacityBytes?: number | undefined;
  /**
   * How many bytes of stored events a joining client receives at most, even when reconnecting to the same relay. A gap
   * replaces older events. @defaultValue 8 388 608 (8 MiB)
   */
  readonly maxReplayBytes?: number | undefined;
  /**
   * How many clients receive events of the `log` at once. The others wait, with heartbeats; the newest goes first.
   * @defaultValue 8
   */
  readonly maxReplays?: number | undefined;
  /** Sends the events of this interval together, in ms. 0: those of one turn of the event loop. @defaultValue 16 */
  readonly batchMs?: number | undefined;
  /** How often a client receives a heartbeat, in ms. @defaultValue 15 000 */
  readonly heartbeatMs?: number | undefined;
  /** How many clients are connected at most, including those being authorized. @defaultValue 1 000 */
  readonly maxClients?: number | undefined;
  /**
   * How many streams a user may have at a time. Each tab has one, except with `tabs: 'share'`. Applies to clients with
   * a user. @defaultValue no limit
   */
  readonly maxClientsPerUser?: number | undefined;
  /**
   * The maximum age of a stream, in ms. It ends at a random time in the last tenth, so clients that joined together
   * don't reconnect together. The client reconnects at once, is authorized again, and misses nothing.
   *
   * @defaultValue no limit
   */
  readonly maxAgeMs?: number | undefined;
  /**
   * How many topics of `select` exist at most, including unused ones kept for `lingerMs`. Clients that ask for another
   * topic receive a 503. Each topic has its own log. An operator created per request is a new topic each time.
   * @defaultValue 100
   */
  readonly maxTopics?: number | undefined;
  /** How long the feed stays open after the last client has left, so clients can resume, in ms. @defaultValue 60 000 */
  readonly lingerMs?: number | undefined;
  /**
   * The cluster whose `events$` is the source. All replicas then use the same message ids: a page that a load balancer
   * sends to another replica resumes there, and sees a gap only if no replica has the frames. Don't put operators that
   * delay events between `events$` and the relay. Clients with a topic resume by time.
   *
   * @defaultValue none: each relay has separate ids
   */
  readonly cluster?: (PositionedFeed & Partial<StoredLine>) | undefined;
  /**
   * The log whose `read$` is the source. A page that was away for longer than `capacity` reaches, or whose relay has
   * restarted, then receives what it missed from the log: at most `maxReplayBytes`. Clients with a topic don't.
   *
   * @defaultValue none: only what's in memory
   */
  readonly log?: StoredLine | undefined;
  /** Clock and timers, for tests. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The options with all defaults. */
export type RelaySettings = ReturnType<typeof resolveRelayOptions>;

const defaults = Object.freeze({
  capacity: 50_000,
  capacityBytes: 32 * 1024 * 1024,
  maxReplayBytes: 8 * 1024 * 1024,
  maxReplays: 8,
  batchMs: 16,
  heartbeatMs: 15_000,
  maxClients: 1_000,
  maxClientsPerUser: Infinity,
  maxAgeMs: Infinity,
  maxTopics: 100,
  lingerMs: 60_000,
  scheduler: asyncScheduler,
});

const rules: Readonly<Record<keyof RelayOptions, Rule>> = {
  capacity: positiveCount,
  capacityBytes: positiveCount,
  maxReplayBytes: positiveCount,
  maxReplays: positiveCount,
  batchMs: durationMs,
  heartbeatMs: positiveMs,
  maxClients: positiveCount,
  maxClientsPerUser: positiveCount,
  maxAgeMs: positiveMs,
  maxTopics: positiveCount,
  lingerMs: durationMs,
  cluster: { allowed: 'a cluster of createFeedCluster', is: (v) => anObject.is(v) && 'position' in (v as object) },
  log: { allowed: 'a log of feedLog, or of a server', is: (v) => anObject.is(v) && 'stored' in (v as object) },
  scheduler: aScheduler,
};

/**
 * Checks the options and adds the defaults.
 *
 * @param prefix - precedes each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveRelayOptions = (options: RelayOptions = {}, prefix = '') => {
  return { ...defaults, ...validated(options, rules, prefix) };
};

/** One client of a relay. */
export interface RelayReceiver {
  /** The `Last-Event-ID` of the request. The client receives every event since then, or a gap. */
  readonly lastEventId?: string | undefined;
  /**
   * How much of the past a client without `lastEventId` receives first, in ms; `maxReplayBytes` limits it.
   * @defaultValue 0: only new events
   */
  readonly sinceMs?: number | undefined;
  /** The response that the messages are written to: while it is full, messages wait. Without it they never wait. */
  readonly response?: RelayResponse | undefined;
  /** An operator whose output replaces the frames: see {@link RelayTopic}. @defaultValue the complete feed */
  readonly select?: RelayTopic | undefined;
  /** The user's id, for `maxClientsPerUser` and {@link Relay.disconnect}. */
  readonly user?: string | undefined;
}

/** The part of a response that a relay uses. Node's `ServerResponse` has it. */
export interface RelayResponse {
  /** Whether the buffer is full. The relay then waits for `drain`. */
  readonly writableNeedDrain: boolean;
  /** Adds a listener for when the buffer has room again. */
  on(event: 'drain', listener: () => void): unknown;
  /** Removes the listener. */
  off(event: 'drain', listener: () => void): unknown;
  /** Called when the client hasn't read for four heartbeats. */
  destroy(): unknown;
}

/** The key of {@link PendingReceiver}. Not published. */
export const admission = Symbol('admission');

/** A client that must be authorized first. */
export interface PendingReceiver extends RelayReceiver {
  /** Emits the user and the topic of an authorized client, instead of those of the receiver. Empty if it has left. */
  readonly [admission]?: Observable<Pick<RelayReceiver, 'user' | 'select' | 'sinceMs'>>;
}
