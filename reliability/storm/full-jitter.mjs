// When clients come back that keep the rules of DESIGN: written down a second time, to be held against what the library does.

/** The longest wait before each attempt: 1, 2, … */
export const longestMs = ({ initialDelayMs, maxDelayMs, factor }, attempt) =>
  Math.min(maxDelayMs, initialDelayMs * factor ** (attempt - 1));

/**
 * Draws when each client comes back to a service that is away from 0 to `upAt`: its waits are anywhere up to the longest.
 *
 * @param lostAt - when each client lost its connection, in ms
 * @param triesAtOnce - whether the first attempt needs no wait: after a stable connection that was cut
 * @param tryMs - how long an attempt takes that finds nobody
 */
export const comeBack = ({ lostAt, upAt, policy, triesAtOnce, tryMs, random }) =>
  lostAt.map((lost) => {
    let time = lost;
    for (let attempt = 1; ; attempt += 1) {
      if (attempt > 1) time += tryMs;
      if (attempt > 1 || !triesAtOnce) time += random() * longestMs(policy, attempt);
      if (time >= upAt) return time;
    }
  });
