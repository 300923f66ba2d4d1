import type { TradeFeedError } from 'rx-trade-feed';
import { eventsOf } from './of.js';
import type { Seen, Subscribed } from './seen.js';

// What the service asked for counts where its answer arrived.
export const floors = (log: readonly Seen[]): readonly string[] => {
  let askedMs = 0;
  let wasAnswered = false;
  return log.flatMap((seen) => {
    if (seen.what === 'ticket-answered' || seen.what === 'handshake-answered') askedMs = seen.retryAfterMs ?? 0;
    if (seen.what !== 'event') return [];
    if (seen.event.type === 'disconnected') wasAnswered = seen.event.failure.status !== undefined;
    if (seen.event.type !== 'reconnecting' || !wasAnswered || seen.event.delayMs >= askedMs) return [];
    return [`waits ${seen.event.delayMs} ms, was asked for ${askedMs}`];
  });
};

// The next attempt begins no sooner than was said, and nothing waits longer than the policy or the service says. By the times of the
// events themselves: those of a worker may be told together.
export const kept = (log: readonly Seen[], { initialDelayMs, maxDelayMs, earlyMs }: Subscribed): readonly string[] => {
  let notBefore = -Infinity;
  let failure: TradeFeedError | undefined;
  return eventsOf(log).flatMap((event) => {
    if (event.type === 'disconnected') failure = event.failure;
    if (event.type === 'reconnecting') {
      notBefore = event.at + event.delayMs - earlyMs;
      const most = Math.max(maxDelayMs, (failure?.retryAfterMs ?? 0) + initialDelayMs, 1);
      return event.delayMs > most ? [`waits ${event.delayMs} ms, ${most} are the most`] : [];
    }
    return event.type === 'ticket-requested' && event.at < notBefore
      ? [`an attempt ${notBefore - event.at} ms too early`]
      : [];
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
