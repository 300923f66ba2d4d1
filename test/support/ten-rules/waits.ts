import type { TradeFeedError } from 'rx-trade-feed';
import { eventsOf, of } from './of.js';
import type { Seen, Subscribed } from './seen.js';

export const floors = (log: readonly Seen[]): readonly string[] => {
  let askedMs = 0;
  return log.flatMap((seen) => {
    if (seen.what === 'ticket-answered' || seen.what === 'handshake-answered') askedMs = seen.retryAfterMs ?? 0;
    if (seen.what !== 'event' || seen.event.type !== 'reconnecting') return [];
    const wrong = seen.event.delayMs < askedMs ? [`waits ${seen.event.delayMs} ms, was asked for ${askedMs}`] : [];
    askedMs = 0;
    return wrong;
  });
};

// The next attempt begins no sooner than was said, and nothing waits longer than the policy or the service says.
export const kept = (log: readonly Seen[], { initialDelayMs, maxDelayMs, earlyMs }: Subscribed): readonly string[] => {
  let notBefore = -Infinity;
  let failure: TradeFeedError | undefined;
  return of(log, 'event').flatMap(({ at, event }) => {
    if (event.type === 'disconnected') failure = event.failure;
    if (event.type === 'reconnecting') {
      notBefore = at + event.delayMs - earlyMs;
      const most = Math.max(maxDelayMs, (failure?.retryAfterMs ?? 0) + initialDelayMs, 1);
      return event.delayMs > most ? [`waits ${event.delayMs} ms, ${most} are the most`] : [];
    }
    return event.type === 'ticket-requested' && at < notBefore ? [`an attempt ${notBefore - at} ms too early`] : [];
  });
};

export const zeros = (log: readonly Seen[], { stableAfterMs }: Subscribed): readonly string[] => {
  let mayBeZero = true;
  return eventsOf(log).flatMap((event) => {
    if (event.type === 'disconnected' && event.failure.stage === 'stream' && event.failure.uptimeMs >= stableAfterMs)
      mayBeZero = true;
    if (event.type !== 'reconnecting' || event.delayMs > 0) return [];
    const wrong = mayBeZero ? [] : ['a second wait of zero without a stable connection'];
    mayBeZero = false;
    return wrong;
  });
};
