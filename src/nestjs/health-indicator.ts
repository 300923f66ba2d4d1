import type { ClusterStatus } from '../cluster/index.js';
import type { FailureCode } from '../protocol/failures/meanings.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import type { Stale } from '../operators/freshness.js';
import type { FeedWatch } from '../operators/items/feed-watch.js';
import { anObject, durationMs, validated } from '../protocol/validate.js';
import { waitingText } from '../protocol/event-record.js';
import type { FeedStatus } from './observers.js';
import type { TradeFeed } from './trade-feed.js';

/** The part of a feed that decides its health. */
export type HealthSource = Pick<TradeFeed, 'status'> & Partial<Pick<TradeFeed, 'freshness' | 'cluster' | 'relay'>>;

/** The options of {@link TradeFeedHealthIndicator.isHealthy}. */
export interface HealthOptions {
  /** The feed. @defaultValue the feed of the module that provides the indicator */
  readonly feed?: HealthSource | undefined;
  /** How long an outage may last before the result is `down`, in ms. Most take a second or two. @defaultValue 5 000 */
  readonly maxOutageMs?: number | undefined;
}

/** The health of a feed. Safe to publish: it holds fixed texts only, and in a cluster the names of replicas. */
export interface FeedHealth {
  readonly status: 'up' | 'down';
  readonly state: FeedStatus['state'];
  /** When this state began: an RFC 3339 timestamp. */
  readonly since: string;
  /** When live and the newest frame is too old: when it was received. Missing if none has arrived. */
  readonly newestFrameAt?: string;
  /** When live: the number of the connection, 1, 2, … */
  readonly connection?: number;
  /**
   * The code of the failure: when reconnecting or stopped, when the first connection takes longer than 5 s, when the
   * cluster's engine refuses something, or when the relay can't admit pages.
   */
  readonly code?: FailureCode;
  /** The reason and what to do, in fixed texts. Your server's log has the details. */
  readonly reason?: string;
  /** When reconnecting: when the next attempt starts. Missing during an attempt. */
  readonly nextAttemptAt?: string;
  /** In a cluster: what this replica does, for example `owning` or `following`. */
  readonly role?: ClusterStatus['role'];
  /** In a cluster: the id of this replica. */
  readonly replica?: string;
  /** In a cluster: the id of the replica that owns the connection. Missing if none does, or if it isn't known. */
  readonly owner?: string;
  /** In a cluster: why this replica couldn't own the connection when it last tried, for example because of its key. */
  readonly cannotOwn?: { readonly code: FailureCode; readonly reason: string };
}

/** The result of a health indicator of `@nestjs/terminus`. */
export type TradeFeedHealthResult<Key extends string = string> = Readonly<Record<Key, FeedHealth>>;

/**
 * Reports whether the feed is healthy, to `@nestjs/terminus` 11 and 12 or to code of yours.
 *
 * It's `up` while the feed is live, for the first `maxOutageMs` of an outage, and while nothing is subscribed. It's
 * `down` before the first connection opens, in a longer outage, and once the feed has stopped. If you set the module's
 * `freshness`, it's also `down` while an open connection's newest frame is too old; otherwise a `reason` mentions a
 * silence of 5 s. The indicator opens no connection.
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
   * Returns the current health of the feed.
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
    const fields = Object.entries(healthOf(feed, maxOutageMs)).filter(([, value]) => value !== undefined);
    return { [key]: Object.fromEntries(fields) } as unknown as Record<Key, FeedHealth>;
  }
}

const rules = {
  feed: { allowed: 'a TradeFeed', is: (v: unknown) => anObject.is(v) && 'status' in (v as object) },
  maxOutageMs: durationMs,
};

type Watched = HealthSource & { readonly watch?: FeedWatch | undefined };

const healthOf = (feed: Watched, maxOutageMs: number): { readonly [Name in keyof FeedHealth]: unknown } => {
  const { status, watch } = feed;
  const { role, replica, owner, refused, cannotOwn } = feed.cluster?.status ?? {};
  const { state } = status;
  const silence = silenceOf(feed);
  // A replica that has lost the engine may be back in a moment, and an owner that still receives frames can serve.
  const canServe = refused === undefined || refused.operation === 'connect' || state === 'live' || state === 'stopped';
  const isUp: Readonly<Record<FeedStatus['state'], boolean>> = {
    // A source that a subscriber gets nothing from, such as a cluster without an owner, is down.
    idle: watch?.waiting === undefined,
    connecting: false,
    live: silence === undefined,
    reconnecting: (watch?.downMs ?? wallAgeMs(status.since)) < maxOutageMs,
    stopped: false,
  };
  return {
    status: isUp[state] && canServe ? 'up' : 'down',
    state,
    since: isoTime(status.since),
    connection: status.state === 'live' ? status.connection : undefined,
    nextAttemptAt: status.state === 'reconnecting' ? isoTime(status.nextAttemptAt) : undefined,
    newestFrameAt: isoTime(silence?.newestAt),
    ...reasonFor(feed, silence !== undefined),
    role,
    replica,
    owner,
    cannotOwn: cannotOwn && { code: cannotOwn.code, reason: cannotOwn.toPublic().message },
  };
};

type Reason = Pick<FeedHealth, 'reason'> & { readonly code?: FailureCode | undefined };

/** Picks the most important problem to report. */
const reasonFor = ({ status, cluster, relay, watch }: Watched, isSilent: boolean): Reason => {
  const { state } = status;
  // What the engine said goes to the log only.
  const ofEngine = cluster?.status.refused && state !== 'stopped' ? engineRefusal : undefined;
  const failure = ofEngine ?? ('failure' in status ? status.failure : undefined);
  if (failure) return { code: failure.code, reason: failure.toPublic().message };
  if (isSilent) return { reason: 'The connection is open, but the newest frame is older than expected.' };
  // A feed may simply be quiet, so silence isn't a failure unless `freshness` is set.
  const waiting = watch?.waiting;
  if (waiting) return { code: state === 'live' ? undefined : waiting.code, reason: waitingText(waiting) };
  if (state === 'connecting') return { reason: "The first connection isn't open yet." };
  // The feed itself is up, so neither another replica nor a restart would help.
  const refused = relay?.status().refused;
  return refused === undefined ? {} : { code: refused.code, reason: relayReasons[refused.code] };
};

const engineRefusal = createFailure(clusterMeanings.engineRefused, { stage: 'stream' });

const relayReasons = {
  'relay-failed': 'Pages receive 500, because `authorize` or `select` of the relay fails. See the error in the log.',
  'relay-authorize-timeout':
    'Pages receive 503, because `authorize` of the relay takes longer than `authorizeTimeoutMs`. Look at what it waits for.',
};

/** Returns since when an open connection has had no new frames; the opening counts until the first one arrives. */
const silenceOf = ({ status, freshness, watch }: Watched): Stale | undefined =>
  status.state === 'live' &&
  freshness?.state === 'stale' &&
  (watch?.liveMs ?? wallAgeMs(status.since)) >= freshness.maxAgeMs
    ? freshness
    : undefined;

// A time in the future means that the clock was set back, which must not make an outage look short.
const wallAgeMs = (since: number): number => (since > Date.now() ? Infinity : Date.now() - since);

const isoTime = (at: number | undefined): string | undefined => (at === undefined ? at : new Date(at).toISOString());
