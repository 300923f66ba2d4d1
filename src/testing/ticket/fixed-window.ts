/** The window of an account: when it began, and how many requests it has counted. */
export interface FixedWindow {
  readonly startedAt: number;
  readonly count: number;
}

/** The size of a window. */
export interface WindowLimits {
  readonly windowMs: number;
  readonly ticketsPerWindow: number;
}

/** What counting a request gave: the window after it, and how long to wait when there was no room. */
export interface Counted {
  readonly window: FixedWindow;
  readonly retryAfterSeconds?: number;
}

/**
 * Counts a ticket request in the fixed window of its account (contract, sections 7.1 and 8). Pure.
 *
 * A window begins with the first request after the end of the one before. `Retry-After` is rounded up, so that whoever waits
 * as long as it says finds a new window.
 */
export const countInWindow = (
  window: FixedWindow | undefined,
  now: number,
  { windowMs, ticketsPerWindow }: WindowLimits,
): Counted => {
  const current = window && now < window.startedAt + windowMs ? window : { startedAt: now, count: 0 };
  if (current.count < ticketsPerWindow) return { window: { ...current, count: current.count + 1 } };
  const waitMs = current.startedAt + windowMs - now;
  return { window: current, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
};
