import type { Expected, Step } from './expected.js';
import type { Reaction } from './watched.js';

/** A subscription's options that affect its timing. */
export interface Profile {
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly stableAfterMs: number;
  readonly maxAttempts: number;
  readonly jitter: 'full' | 'equal' | 'none';
  /** What `random` returns. */
  readonly drawn: number;
  readonly ticketTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** The state of a subscription in the model. Times are on the virtual clock. */
export interface ModelFeed {
  readonly subscription: number;
  readonly profile: Profile;
  readonly phase: 'requesting' | 'handshaking' | 'open' | 'waiting' | 'over';
  /** When the next timer fires. */
  readonly dueAt: number;
  readonly requestedAt: number;
  readonly openedAt: number;
  readonly receivedAt: number;
  /** Whether a connection was open before, so that the next one opens with a gap. */
  readonly hasBeenOpen: boolean;
  /** Whether the service ignores pings, and whether one was sent. */
  readonly isMute: boolean;
  readonly isPinged: boolean;
  /** When the next ping may be sent: waiting for an answer always takes its full time. */
  readonly pingFrom: number;
  /** Whether the ticket expires before the handshake times out. */
  readonly expires: boolean;
  /** Whether the previous attempt's ticket expired, so that this attempt ignores its ticket's deadline. */
  readonly hasExpired: boolean;
  readonly reaction: Reaction | undefined;
  readonly last: { readonly afterStable: boolean; readonly attempt: number; readonly delayMs: number } | undefined;
}

/** What a change leads to: the new state, and the steps that the feed emits. */
export interface Outcome {
  readonly feed: ModelFeed;
  readonly steps: readonly Step[];
  /** How attempts ended, in order. */
  readonly ends?: readonly End[];
  /** Whether the consumer's exception ends the feed. */
  readonly endsWithOwn?: boolean;
  /** Whether the consumer's exception reaches the hook for unhandled errors. */
  readonly unhandled?: boolean;
}

/** The failure of an attempt, and the bounds of the delay after it. */
export interface End {
  readonly failure: Expected & { readonly uptimeMs?: number };
  readonly waitMs?: readonly [least: number, most: number];
}

export const subscribed = (subscription: number, profile: Profile, now: number): ModelFeed => ({
  ...{ subscription, profile, phase: 'requesting', dueAt: now + profile.ticketTimeoutMs, requestedAt: now },
  ...{ openedAt: 0, receivedAt: 0, hasBeenOpen: false, isMute: false, isPinged: false, pingFrom: 0, expires: false },
  ...{ hasExpired: false, reaction: undefined, last: undefined },
});

/** An attempt begins. */
export const requested = (feed: ModelFeed, now: number): Outcome => ({
  feed: { ...feed, phase: 'requesting', requestedAt: now, dueAt: now + feed.profile.ticketTimeoutMs },
  steps: ['ticket-requested'],
});

/** A ticket with this lifetime was issued. Zero or less means that a clock is wrong, so there's no deadline. */
export const issued = (feed: ModelFeed, now: number, lifetimeMs: number, expired: Expected): Outcome => {
  const leftMs = lifetimeMs <= 0 || feed.hasExpired ? Infinity : feed.requestedAt + lifetimeMs - now;
  if (leftMs <= 0) {
    const then = failed(feed, now, expired);
    return { ...then, steps: ['ticket-issued', ...then.steps] };
  }
  const { handshakeTimeoutMs } = feed.profile;
  const expires = leftMs <= handshakeTimeoutMs;
  const dueAt = now + Math.min(leftMs, handshakeTimeoutMs);
  return { feed: { ...feed, phase: 'handshaking', expires, dueAt }, steps: ['ticket-issued'] };
};

const unpinged = (feed: ModelFeed): ModelFeed => ({ ...feed, isMute: false, isPinged: false, pingFrom: 0 });

/** The handshake was accepted, with frames in the same write. */
export const opened = (feed: ModelFeed, now: number, frames: number): Outcome => ({
  feed: {
    ...unpinged(feed),
    phase: 'open',
    openedAt: now,
    receivedAt: now,
    dueAt: silentAt({ ...feed, pingFrom: 0 }, now),
    hasBeenOpen: true,
  },
  steps: ['opened', ...(feed.hasBeenOpen ? (['gap'] as const) : []), ...Array<Step>(frames).fill('frame')],
});

/** Bytes arrived on an open connection. */
export const received = (feed: ModelFeed, now: number, frames: number): Outcome => ({
  feed: { ...feed, receivedAt: now, isPinged: false, dueAt: silentAt(feed, now) },
  steps: Array<Step>(frames).fill('frame'),
});

/** An open connection was silent for as long as allowed. */
export const silent = (feed: ModelFeed, now: number, stalled: Expected): Outcome => {
  if (feed.isPinged) return failed(feed, now, stalled, feed.receivedAt - feed.openedAt);
  const answerMs = Math.min(feed.profile.idleTimeoutMs, 5_000);
  if (!feed.isMute) return received({ ...feed, pingFrom: now + answerMs + 1 }, now, 0);
  return { feed: { ...feed, isPinged: true, dueAt: now + answerMs }, steps: [] };
};

const silentAt = ({ pingFrom, profile: { idleTimeoutMs } }: ModelFeed, now: number): number =>
  idleTimeoutMs === 0 ? Infinity : Math.max(pingFrom, now + idleTimeoutMs);

/** An attempt ended. The verdict and the `BackoffPolicy` decide what happens next. */
export const failed = (feed: ModelFeed, now: number, failure: Expected, uptimeMs = now - feed.openedAt): Outcome => {
  const { stage, verdict, retryAfterMs: floorMs = 0 } = failure;
  const { profile, last } = feed;
  const over = { ...feed, phase: 'over', dueAt: Infinity } as const;
  const seen = stage === 'stream' ? { ...failure, uptimeMs } : failure;
  if (verdict === 'stop') return { feed: over, steps: ['stopped', 'errored'], ends: [{ failure: seen }] };

  const afterStable = stage === 'stream' && uptimeMs >= profile.stableAfterMs;
  const attempt = afterStable ? 1 : (last?.attempt ?? 0) + 1;
  if (attempt > profile.maxAttempts)
    return {
      feed: over,
      steps: ['stopped', 'errored'],
      ends: [{ failure: { stage, verdict: 'stop', code: 'retries-exhausted' } }],
    };

  const atOnce =
    verdict === 'renew' && (afterStable || (stage !== 'stream' && !!last?.afterStable && last.delayMs > 0));
  const spreadMs = floorMs > 0 && profile.jitter !== 'none' ? profile.initialDelayMs : 0;
  const longestMs = Math.min(profile.maxDelayMs, profile.initialDelayMs * 2 ** (attempt - 1));
  const own: readonly [number, number] =
    atOnce || (verdict === 'wait' && floorMs > 0)
      ? [0, 0]
      : profile.jitter === 'none'
        ? [longestMs, longestMs]
        : [profile.jitter === 'equal' ? Math.floor(longestMs / 2) : 1, longestMs];
  return {
    feed: {
      ...feed,
      phase: 'waiting',
      dueAt: NaN,
      hasExpired: failure.code === 'ticket-expired',
      last: { afterStable, attempt, delayMs: NaN },
    },
    steps: ['disconnected', 'reconnecting'],
    ends: [{ failure: seen, waitMs: [Math.max(floorMs, own[0]), Math.max(floorMs + spreadMs, own[1])] }],
  };
};

/** The feed waits as long as it reported. */
export const waiting = (feed: ModelFeed, now: number, delayMs: number): ModelFeed => ({
  ...feed,
  dueAt: now + delayMs,
  last: { afterStable: false, attempt: 1, ...feed.last, delayMs },
});

/** Returns whether the next attempt begins at once. */
export const isAtOnce = ({ ends }: Outcome): boolean => ends?.at(-1)?.waitMs?.[1] === 0;

/** Combines two changes. */
export const then = (first: Outcome, next: (feed: ModelFeed) => Outcome): Outcome => {
  const second = next(first.feed);
  const ends = [...(first.ends ?? []), ...(second.ends ?? [])];
  return { feed: second.feed, steps: [...first.steps, ...second.steps], ends };
};

/** Applies the consumer's reaction. */
export const withReaction = (outcome: Outcome): Outcome => {
  const { feed, steps } = outcome;
  const { reaction } = feed;
  const at = reaction ? steps.indexOf(reaction.on) : -1;
  if (reaction === undefined || at === -1) return outcome;
  const rest = { ...feed, reaction: undefined };
  if (reaction.does === 'block') return { ...outcome, feed: rest };
  if (reaction.does === 'throw in next') return { ...outcome, feed: rest, unhandled: true };
  const over = { ...rest, phase: 'over', dueAt: Infinity } as const;
  return reaction.does === 'unsubscribe'
    ? { ...outcome, feed: over, steps: [...steps.slice(0, at + 1), 'unsubscribed'] }
    : { ...outcome, feed: over, steps: [...steps.slice(0, at), 'errored'], endsWithOwn: true };
};
