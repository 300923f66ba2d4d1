import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { aScheduler, durationMs, positiveCount, positiveMs, type Rule, validated } from '../protocol/rules.js';

/** How much a relay holds, how often it sends, and for how many. */
export interface RelayOptions {
  /**
   * How many events are held, for all clients together: the most that a client may be behind or away and still get everything.
   *
   * @defaultValue 50 000
   */
  readonly capacity?: number | undefined;
  /** How many bytes these may have in memory: one for each character, two in an event with one beyond Latin-1. @defaultValue 33 554 432 (32 MiB) */
  readonly capacityBytes?: number | undefined;
  /**
   * The most bytes that a client which joins gets out of what is held. What is older is a gap, also for a client that comes back to the
   * relay that it was at.
   *
   * @defaultValue 8 388 608 (8 MiB)
   */
  readonly maxReplayBytes?: number | undefined;
  /** Events of this long go out together, in ms. 0: those of one turn of the event loop. @defaultValue 16 */
  readonly batchMs?: number | undefined;
  /** How often a client hears from the relay at least, in ms. @defaultValue 15 000 */
  readonly heartbeatMs?: number | undefined;
  /** How many clients there may be at a time, with those that are being authorized. @defaultValue 1 000 */
  readonly maxClients?: number | undefined;
  /** How many streams one user may have at a time: one for each tab, or each window. For clients that have a user. @defaultValue no limit */
  readonly maxClientsPerUser?: number | undefined;
  /**
   * After how long a stream ends, in ms, so that the client is authorized again; it comes back at once, and misses nothing. Each stream ends
   * at a random time within the last tenth, so that clients that came together do not come back together.
   *
   * @defaultValue no limit
   */
  readonly maxAgeMs?: number | undefined;
  /**
   * How many topics of `select` there may be at a time, with those that no client receives any more and that are kept for `lingerMs`. Clients
   * of further ones are refused with 503: each topic has a log of its own, and an operator that is created for each request is a topic for each.
   *
   * @defaultValue 100
   */
  readonly maxTopics?: number | undefined;
  /** How long the feed is kept open for clients that come back, after the last one left, in ms. @defaultValue 60 000 */
  readonly lingerMs?: number | undefined;
  /** For tests: what keeps the time. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The same, with nothing left out. */
export type RelaySettings = { readonly [Name in keyof RelayOptions]-?: Exclude<RelayOptions[Name], undefined> };

const defaults: RelaySettings = Object.freeze({
  capacity: 50_000,
  capacityBytes: 32 * 1024 * 1024,
  maxReplayBytes: 8 * 1024 * 1024,
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
  batchMs: durationMs,
  heartbeatMs: positiveMs,
  maxClients: positiveCount,
  maxClientsPerUser: positiveCount,
  maxAgeMs: positiveMs,
  maxTopics: positiveCount,
  lingerMs: durationMs,
  scheduler: aScheduler,
};

/**
 * Checks the options and fills them up.
 *
 * @param prefix - put before each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`, naming the option
 */
export const resolveRelayOptions = (options: RelayOptions = {}, prefix = ''): RelaySettings => ({
  ...defaults,
  ...validated(options, rules, prefix),
});
