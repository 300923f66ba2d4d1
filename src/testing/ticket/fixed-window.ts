/** The window of an account: when it began, and the number of requests in it. */
export interface FixedWindow {
  readonly startedAt: number;
  readonly count: number;
}

/** The size of a window. */
export interface WindowLimits {
  readonly windowMs: number;
  readonly ticketsPerWindow: number;
}

/** The result of counting a request: the new window, and how long to wait if the window was full. */
export interface Counted {
  readonly window: FixedWindow;
  readonly retryAfterSeconds?: number;
}

/**
 * Counts a ticket request in the fixed window of its account (contract, sections 7.1 and 8). Pure.
 *
 * A window begins with the first request after the end of the previous window. `Retry-After` is rounded up, so that the window is over after the
 * wait.
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
