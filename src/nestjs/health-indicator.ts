import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { durationMs, validated } from '../protocol/rules.js';
import type { FeedStatus } from './feed-status.js';
import type { TradeFeed } from './trade-feed.js';

/** Of which feed, and what is still healthy. */
export interface HealthOptions {
  /** The feed. @defaultValue the one of the module that the indicator comes from */
  readonly feed?: Pick<TradeFeed, 'status'> | undefined;
  /**
   * How long an outage may last, in ms, before it is `down`: a connection that breaks is most often open again after a second or two.
   *
   * @defaultValue 5 000
   */
  readonly maxOutageMs?: number | undefined;
}

/** How it stands, for whoever watches the application. */
export interface FeedHealth {
  readonly status: 'up' | 'down';
  readonly state: FeedStatus['state'];
  /** Since when it stands so: an RFC 3339 timestamp. */
  readonly since: string;
  /** Live: which connection, 1, 2, … */
  readonly connection?: number;
  /** Reconnecting and stopped: the code of the failure, to branch on. */
  readonly code?: string;
  /** The same in fixed words, with what to do: anybody may read them. The log of the server says more. */
  readonly reason?: string;
  /** Reconnecting: when the next attempt begins; missing while one goes on. */
  readonly nextAttemptAt?: string;
}

/** What a health indicator of `@nestjs/terminus` gives. */
export type TradeFeedHealthResult<Key extends string = string> = Readonly<Record<Key, FeedHealth>>;

/**
 * Tells whether the feed is healthy, for a `HealthCheckService` of `@nestjs/terminus` 11 and 12, or without it.
 *
 * `up` while the feed is live, for the first `maxOutageMs` of an outage, and while nobody is subscribed: then there is no connection, and
 * none is missing. `down` before the first connection is open, in a longer outage, and after a stop. It opens no connection.
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
  readonly #feed: Pick<TradeFeed, 'status'>;

  /** @param feed - the feed that it tells of, unless it is asked for another one */
  constructor(feed: Pick<TradeFeed, 'status'>) {
    this.#feed = feed;
  }

  /**
   * Tells how it stands now.
   *
   * @param key - what the result is called @defaultValue `'trade-feed'`
   * @param options - see {@link HealthOptions}
   * @throws TradeFeedError with code `invalid-options`
   */
  isHealthy<const Key extends string = 'trade-feed'>(
    key: Key = 'trade-feed' as Key,
    options: HealthOptions = {},
  ): TradeFeedHealthResult<Key> {
    const { feed = this.#feed, maxOutageMs = 5_000 } = validated(options, rules);
    return { [key]: healthOf(feed.status, maxOutageMs) } as Record<Key, FeedHealth>;
  }
}

const healthOf = (status: FeedStatus, maxOutageMs: number): FeedHealth => {
  const { state } = status;
  const told = { state, since: isoTime(status.since) };
  switch (state) {
    case 'idle':
      return { status: 'up', ...told };
    case 'live':
      return { status: 'up', ...told, connection: status.connection };
    case 'connecting':
      return { status: 'down', ...told, reason: 'The first connection is not open yet.' };
    case 'reconnecting': {
      const isShort = Date.now() - status.since < maxOutageMs;
      const { nextAttemptAt, failure } = status;
      const next = nextAttemptAt === undefined ? {} : { nextAttemptAt: isoTime(nextAttemptAt) };
      return { status: isShort ? 'up' : 'down', ...told, ...reasonOf(failure), ...next };
    }
    case 'stopped':
      return { status: 'down', ...told, ...reasonOf(status.failure) };
  }
};

const reasonOf = (failure: unknown): Pick<FeedHealth, 'code' | 'reason'> => {
  if (failure instanceof TradeFeedError) return { code: failure.code, reason: failure.toPublic().message };
  return { reason: 'The feed ended with an error that is not a `TradeFeedError`. See the log of the server.' };
};

const isoTime = (at: number): string => new Date(at).toISOString();

const rules = {
  feed: { allowed: 'a TradeFeed', is: (v: unknown) => typeof v === 'object' && v !== null && 'status' in v },
  maxOutageMs: durationMs,
};
