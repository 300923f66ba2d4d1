import type { Expected, Step } from './expected.js';
import type { Whim } from './watched.js';

/** The options of a subscription that its behaviour in time depends on. */
export interface Profile {
  readonly initialDelayMs: number;
  readonly maxDelayMs: number;
  readonly stableAfterMs: number;
  readonly maxAttempts: number;
  readonly jitter: 'full' | 'equal' | 'none';
  /** What `random` gives. */
  readonly drawn: number;
  readonly ticketTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/** What the model knows of a subscription. Times on the virtual clock. */
export interface ModelFeed {
  readonly subscription: number;
  readonly profile: Profile;
  readonly phase: 'asking' | 'shaking' | 'open' | 'waiting' | 'over';
  /** When the next thing happens by itself. */
  readonly dueAt: number;
  readonly askedAt: number;
  readonly openedAt: number;
  readonly heardAt: number;
  /** Whether a connection was open before: the next one opens with a gap. */
  readonly hasBeenOpen: boolean;
  /** Whether the service answers no pings, and whether one was sent. */
  readonly isMute: boolean;
  readonly isPinged: boolean;
  /** Not before this is it pinged again: an answer has its time, also when it came at once. */
  readonly pingFrom: number;
  /** Whether it is the ticket that runs out first in a handshake. */
  readonly expires: boolean;
  /** Whether the attempt before ended because its ticket ran out: then this one leaves it to the service whether a ticket is good. */
  readonly hasExpired: boolean;
  readonly whim: Whim | undefined;
  readonly last: { readonly afterStable: boolean; readonly attempt: number; readonly delayMs: number } | undefined;
}

/** What a change leads to: the feed after it, and what is told on the way. */
export interface Outcome {
  readonly feed: ModelFeed;
  readonly steps: readonly Step[];
  /** How attempts end on the way, in their order. */
  readonly ends?: readonly End[];
  /** Whether the feed ends with the consumer's own exception; whether that went to the hook of unhandled errors. */
  readonly endsWithOwn?: boolean;
  readonly unhandled?: boolean;
}

/** The failure that is told, or that the feed ends with, and the bounds of the wait that follows. */
export interface End {
  readonly failure: Expected & { readonly uptimeMs?: number };
  readonly waitMs?: readonly [least: number, most: number];
}

export const subscribed = (subscription: number, profile: Profile, now: number): ModelFeed => ({
  ...{ subscription, profile, phase: 'asking', dueAt: now + profile.ticketTimeoutMs, askedAt: now },
  ...{ openedAt: 0, heardAt: 0, hasBeenOpen: false, isMute: false, isPinged: false, pingFrom: 0, expires: false },
  ...{ hasExpired: false, whim: undefined, last: undefined },
});

/** The wait is over: an attempt begins. */
export const asked = (feed: ModelFeed, now: number): Outcome => ({
  feed: { ...feed, phase: 'asking', askedAt: now, dueAt: now + feed.profile.ticketTimeoutMs },
  steps: ['ticket-requested'],
});

/** A ticket was issued that lives this long; one without time to live comes from a wrong clock, and is tried as one without a deadline. */
export const issued = (feed: ModelFeed, now: number, lifetimeMs: number, expired: Expected): Outcome => {
  const leftMs = lifetimeMs <= 0 || feed.hasExpired ? Infinity : feed.askedAt + lifetimeMs - now;
  if (leftMs <= 0) {
    const then = failed(feed, now, expired);
    return { ...then, steps: ['ticket-issued', ...then.steps] };
  }
  const { handshakeTimeoutMs } = feed.profile;
  const expires = leftMs <= handshakeTimeoutMs;
  const dueAt = now + Math.min(leftMs, handshakeTimeoutMs);
  return { feed: { ...feed, phase: 'shaking', expires, dueAt }, steps: ['ticket-issued'] };
};

/** The handshake was accepted, with frames in the same write. */
export const opened = (feed: ModelFeed, now: number, frames: number): Outcome => ({
  feed: {
    ...feed,
    ...{
      phase: 'open',
      openedAt: now,
      heardAt: now,
      dueAt: silentAt({ ...feed, pingFrom: 0 }, now),
      hasBeenOpen: true,
      isMute: false,
      isPinged: false,
      pingFrom: 0,
    },
  },
  steps: ['opened', ...(feed.hasBeenOpen ? (['gap'] as const) : []), ...Array<Step>(frames).fill('frame')],
});

/** Something was heard of an open connection. */
export const heard = (feed: ModelFeed, now: number, frames: number): Outcome => ({
  feed: { ...feed, heardAt: now, isPinged: false, dueAt: silentAt(feed, now) },
  steps: Array<Step>(frames).fill('frame'),
});

/** An open connection was silent for as long as it may be. */
export const silent = (feed: ModelFeed, now: number, stalled: Expected): Outcome => {
  if (feed.isPinged) return failed(feed, now, stalled, feed.heardAt - feed.openedAt);
  const answerMs = Math.min(feed.profile.idleTimeoutMs, 5_000);
  if (!feed.isMute) return heard({ ...feed, pingFrom: now + answerMs + 1 }, now, 0);
  return { feed: { ...feed, isPinged: true, dueAt: now + answerMs }, steps: [] };
};

const silentAt = ({ pingFrom, profile: { idleTimeoutMs } }: ModelFeed, now: number): number =>
  idleTimeoutMs === 0 ? Infinity : Math.max(pingFrom, now + idleTimeoutMs);

/** The attempt ended: the design's section 4 for what comes of it, `BackoffPolicy` for when. */
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

/** The wait that was told, within its bounds: time goes on from there. */
export const waiting = (feed: ModelFeed, now: number, delayMs: number): ModelFeed => ({
  ...feed,
  dueAt: now + delayMs,
  last: { afterStable: false, attempt: 1, ...feed.last, delayMs },
});

/** Whether the next attempt begins there and then. */
export const isAtOnce = ({ ends }: Outcome): boolean => ends?.at(-1)?.waitMs?.[1] === 0;

/** One thing after another. */
export const then = (first: Outcome, next: (feed: ModelFeed) => Outcome): Outcome => {
  const second = next(first.feed);
  const ends = [...(first.ends ?? []), ...(second.ends ?? [])];
  return { feed: second.feed, steps: [...first.steps, ...second.steps], ends };
};

/** What becomes of it when the consumer has a whim. */
export const withWhim = (outcome: Outcome): Outcome => {
  const { feed, steps } = outcome;
  const { whim } = feed;
  const at = whim ? steps.indexOf(whim.on) : -1;
  if (whim === undefined || at === -1) return outcome;
  const rest = { ...feed, whim: undefined };
  if (whim.does === 'block') return { ...outcome, feed: rest };
  if (whim.does === 'throw in next') return { ...outcome, feed: rest, unhandled: true };
  const over = { ...rest, phase: 'over', dueAt: Infinity } as const;
  return whim.does === 'unsubscribe'
    ? { ...outcome, feed: over, steps: [...steps.slice(0, at + 1), 'unsubscribed'] }
    : { ...outcome, feed: over, steps: [...steps.slice(0, at), 'errored'], endsWithOwn: true };
};
