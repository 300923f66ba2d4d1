import type { ClusterStatus } from '../cluster/index.js';
import type { FailureCode } from '../protocol/failures/failure-code.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { durationMs, validated } from '../protocol/rules.js';
import type { FeedStatus } from './feed-status.js';
import type { TradeFeed } from './trade-feed.js';

/** The options of {@link TradeFeedHealthIndicator.isHealthy}. */
export interface HealthOptions {
  /** The feed. @defaultValue the feed of the module that provides the indicator */
  readonly feed?: FeedWithHealth | undefined;
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

/** What the health of a feed depends on. */
export type FeedWithHealth = Pick<TradeFeed, 'status'> & Partial<Pick<TradeFeed, 'cluster'>>;

/** The result of a health indicator of `@nestjs/terminus`. */
export type TradeFeedHealthResult<Key extends string = string> = Readonly<Record<Key, FeedHealth>>;

/**
 * Reports whether the feed is healthy, for a `HealthCheckService` of `@nestjs/terminus` 11 and 12, or for your own use.
 *
 * The result is `up` while the feed is live, for the first `maxOutageMs` of an outage, and without a subscriber, when no connection is
 * needed. It is `down` before the first connection is open, in a longer outage, and after a stop. The indicator opens no connection.
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
  readonly #feed: FeedWithHealth;

  /** @param feed - the default feed of `isHealthy` */
  constructor(feed: FeedWithHealth) {
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
    const health = { ...healthOf(feed.status, maxOutageMs), ...(feed.cluster && membership(feed.cluster.status)) };
    return { [key]: health } as Record<Key, FeedHealth>;
  }
}

const healthOf = (status: FeedStatus, maxOutageMs: number): FeedHealth => {
  const { state } = status;
  const base = { state, since: isoTime(status.since) };
  switch (state) {
    case 'idle':
      return { status: 'up', ...base };
    case 'live':
      return { status: 'up', ...base, connection: status.connection };
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

const reasonOf = (failure: TradeFeedError | undefined): Pick<FeedHealth, 'code' | 'reason'> =>
  failure ? { code: failure.code, reason: failure.toPublic().message } : {};

const isoTime = (at: number): string => new Date(at).toISOString();

const rules = {
  feed: { allowed: 'a TradeFeed', is: (v: unknown) => typeof v === 'object' && v !== null && 'status' in v },
  maxOutageMs: durationMs,
};
