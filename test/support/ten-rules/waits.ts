import type { TradeFeedError } from 'rx-trade-feed';
import { eventsOf } from './entries-of.js';
import type { Seen, Subscribed } from './seen.js';

// A `Retry-After` counts only if the answer arrived.
export const floors = (log: readonly Seen[]): readonly string[] => {
  let retryAfterMs = 0;
  let wasAnswered = false;
  return log.flatMap((seen) => {
    if (seen.what === 'ticket-answered' || seen.what === 'handshake-answered') retryAfterMs = seen.retryAfterMs ?? 0;
    if (seen.what !== 'event') return [];
    if (seen.event.type === 'disconnected') wasAnswered = seen.event.failure.status !== undefined;
    if (seen.event.type !== 'reconnecting' || !wasAnswered || seen.event.delayMs >= retryAfterMs) return [];
    return [`waits ${seen.event.delayMs} ms, but Retry-After was ${retryAfterMs} ms`];
  });
};

// The next attempt does not begin before the reported delay is over, and no delay exceeds the policy or `Retry-After`. This uses the
// times of the events, because a worker may emit several events together.
export const observedDelays = (
  log: readonly Seen[],
  { initialDelayMs, maxDelayMs, earlyMs }: Subscribed,
): readonly string[] => {
  let notBefore = -Infinity;
  let failure: TradeFeedError | undefined;
  return eventsOf(log).flatMap((event) => {
    if (event.type === 'disconnected') failure = event.failure;
    if (event.type === 'reconnecting') {
      notBefore = event.at + event.delayMs - earlyMs;
      const most = Math.max(maxDelayMs, (failure?.retryAfterMs ?? 0) + initialDelayMs, 1);
      return event.delayMs > most ? [`waits ${event.delayMs} ms, but the maximum is ${most}`] : [];
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
    const wrong = mayBeZero ? [] : ['a second zero delay without a stable connection'];
    mayBeZero = false;
    return wrong;
  });
};
