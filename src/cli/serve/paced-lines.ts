import { setTimeout as delay } from 'node:timers/promises';

/** What a pace may make up for when it was held up, in ms; the rest is left out, or it would come as one flood. */
const catchUpMs = 100;

/**
 * Passes values on at a rate at most. It asks for the next one only when that is due, so a fast source waits.
 *
 * @param rate - values a second
 * @param signal - ends the wait
 */
export async function* pacedAt<T>(rate: number, values: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const stepMs = 1_000 / rate;
  let dueMs = performance.now();
  for await (const value of values) {
    const waitMs = dueMs - performance.now();
    // Timers keep whole ms: at a high rate several values go out in one turn.
    if (waitMs >= 1) await delay(waitMs, undefined, { signal });
    yield value;
    dueMs = Math.max(dueMs, performance.now() - catchUpMs) + stepMs;
  }
}
