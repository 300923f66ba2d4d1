import type { ClusterStatus } from '../cluster/index.js';
import type { FailureCode } from '../protocol/failures/failure-code.js';
import type { LiveStatus } from '../operators/connection-status.js';
import type { Freshness } from '../operators/freshness.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { durationMs, validated } from '../protocol/rules.js';
import type { FeedStatus } from './feed-status.js';
import type { TradeFeed } from './trade-feed.js';

/** The part of a feed that decides its health. */
export type HealthSource = Pick<TradeFeed, 'status'> & Partial<Pick<TradeFeed, 'freshness' | 'cluster'>>;

/** The options of {@link TradeFeedHealthIndicator.isHealthy}. */
export interface HealthOptions {
  /** The feed. @defaultValue the feed of the module that provides the indicator */
  readonly feed?: HealthSource | undefined;
  /**
   * How long an outage may last, in ms, before the result is `down`. Most connections are open again after a second or two.
   *
   * @defaultValue 5 000
   */
  readonly maxOutageMs?: number | undefined;
}

/** The health of a feed. It contains fixed texts only, and in a cluster the names of replicas, so it is safe to publish. */
export interface FeedHealth {
  readonly status: 'up' | 'down';
  readonly state: FeedStatus['state'];
  /** When this state began: an RFC 3339 timestamp. */
  readonly since: string;
  /** When live, and the newest frame is too old: when it was received. Missing if there was none. */
  readonly newestFrameAt?: string;
  /** When live: the number of the connection, 1, 2, … */
  readonly connection?: number;
  /** When reconnecting or stopped: the code of the failure, to branch on. */
  readonly code?: FailureCode;
  /** The reason and what to do, in fixed texts. The log of the server contains the details. */
  readonly reason?: string;
  /** When reconnecting: the start of the next attempt. Missing during an attempt. */
  readonly nextAttemptAt?: string;
  /** In a cluster: what this replica does, for example `owning` or `following`. */
  readonly role?: ClusterStatus['role'];
  /** In a cluster: the id of this replica. */
  readonly replica?: string;
  /** In a cluster: the id of the owner of the connection. Missing if there is none, or if it is not known. */
  readonly owner?: string;
}

/** The result of a health indicator of `@nestjs/terminus`. */
export type TradeFeedHealthResult<Key extends string = string> = Readonly<Record<Key, FeedHealth>>;

/**
 * Reports whether the feed is healthy, for a `HealthCheckService` of `@nestjs/terminus` 11 and 12, or for your own use.
 *
 * The result is `up` while the feed is live, for the first `maxOutageMs` of an outage, and without a subscriber, when no connection is
 * needed. It is `down` before the first connection is open, in a longer outage, and after a stop. With the option `freshness` of the module, it
 * is also `down` when the connection is open and the newest frame is too old. The indicator opens no connection.
 *
 * @example
 * ```ts
 * import { Controller, Get } from '@nestjs/common';
 * import { HealthCheck, HealthCheckService } from '@nestjs/terminus';
 * import { TradeFeedHealthIndicator } from 'rx-trade-feed/nestjs';
 *
 * @Controller('health')
 * export class HealthController {
 *   constructor(
 *     private readonly health: HealthCheckService,
 *     private readonly tradeFeed: TradeFeedHealthIndicator,
 *   ) {}
 *
 *   @Get()
 *   @HealthCheck()
 *   check() {
 *     return this.health.check([() => this.tradeFeed.isHealthy()]);
 *   }
 * }
 * ```
 */
export class TradeFeedHealthIndicator {
  readonly #feed: HealthSource;

  /** @param feed - the default feed of `isHealthy` */
  constructor(feed: HealthSource) {
    this.#feed = feed;
  }

  /**
   * Returns the health of the feed now.
   *
   * @param key - the name of the result @defaultValue `'trade-feed'`
   * @param options - see {@link HealthOptions}
   * @throws TradeFeedError with code `invalid-options`
   */
  isHealthy<const Key extends string = 'trade-feed'>(
    key: Key = 'trade-feed' as Key,
    options: HealthOptions = {},
  ): TradeFeedHealthResult<Key> {
    const { feed = this.#feed, maxOutageMs = 5_000 } = validated(options, rules);
    const health = { ...healthOf(feed, maxOutageMs), ...(feed.cluster && membership(feed.cluster.status)) };
    return { [key]: health } as Record<Key, FeedHealth>;
  }
}

const healthOf = (feed: HealthSource, maxOutageMs: number): FeedHealth => {
  const { status, freshness } = feed;
  const { state } = status;
  const base = { state, since: isoTime(status.since) };
  switch (state) {
    case 'idle':
      return { status: 'up', ...base };
    case 'live':
      return { status: 'up', ...base, connection: status.connection, ...silenceOf(status, freshness) };
    case 'connecting':
      return { status: 'down', ...base, reason: 'The first connection is not open yet.' };
    case 'reconnecting': {
      const isShort = Date.now() - status.since < maxOutageMs;
      const { nextAttemptAt, failure } = status;
      const next = nextAttemptAt === undefined ? {} : { nextAttemptAt: isoTime(nextAttemptAt) };
      return { status: isShort ? 'up' : 'down', ...base, ...reasonOf(failure), ...next };
    }
    case 'stopped':
      return { status: 'down', ...base, ...reasonOf(status.failure) };
  }
};

const membership = ({ role, replica, owner }: ClusterStatus): Pick<FeedHealth, 'role' | 'replica' | 'owner'> => ({
  ...{ role, replica },
  ...(owner === undefined ? {} : { owner }),
});
/** Returns the fields that report an open connection without current frames. A connection that has just opened has no frame yet. */
const silenceOf = (
  { since }: LiveStatus,
  freshness: Freshness | undefined,
): Pick<FeedHealth, 'reason' | 'newestFrameAt'> & { readonly status?: 'down' } => {
  if (freshness?.state !== 'stale' || Date.now() - since < freshness.maxAgeMs) return {};
  const { newestAt } = freshness;
  const newest = newestAt === undefined ? {} : { newestFrameAt: isoTime(newestAt) };
  return { status: 'down', reason: 'The connection is open, but the newest frame is older than expected.', ...newest };
};

const reasonOf = (failure: TradeFeedError | undefined): Pick<FeedHealth, 'code' | 'reason'> =>
  failure ? { code: failure.code, reason: failure.toPublic().message } : {};

const isoTime = (at: number): string => new Date(at).toISOString();

const rules = {
  feed: { allowed: 'a TradeFeed', is: (v: unknown) => typeof v === 'object' && v !== null && 'status' in v },
  maxOutageMs: durationMs,
};
