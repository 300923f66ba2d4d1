// Predicts when clients with full jitter reconnect. Written from the rules of the policy, without the code of the library.

/** Returns the longest wait before an attempt: 1, 2, … */
export const longestMs = ({ initialDelayMs, maxDelayMs, factor }, attempt) =>
  Math.min(maxDelayMs, initialDelayMs * factor ** (attempt - 1));

/**
 * Draws when each client reaches a service that is down until `upAt`. Each wait is between 0 and the longest wait.
 *
 * @param lostAt - when each client lost its connection, in ms
 * @param isFirstImmediate - whether the first attempt needs no wait, as after a stable connection that was cut
 * @param attemptMs - how long an attempt takes while the service is down
 */
export const comeBack = ({ lostAt, upAt, policy, isFirstImmediate, attemptMs, random }) =>
  lostAt.map((lost) => {
    let time = lost;
    for (let attempt = 1; ; attempt += 1) {
      if (attempt > 1) time += attemptMs;
      if (attempt > 1 || !isFirstImmediate) time += random() * longestMs(policy, attempt);
      if (time >= upAt) return time;
    }
  });
