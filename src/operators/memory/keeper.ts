import { Holding } from './holding.js';
import { withOwnBytes } from './own-bytes.js';

/**
 * Makes values fit to be held for longer than their `next`, where they are never released one by one. Create one per subscription, and
 * pass it what is held, in order.
 *
 * After their turn frames get buffers of exactly their size, as {@link Holding} says. A byte array is copied at once, because it cannot
 * be changed later.
 */
export const keeper = (): (<T>(value: T) => T) => {
  const holding = new Holding<unknown>();
  return (value) => {
    if (value instanceof Uint8Array) return withOwnBytes(value);
    holding.hold(value);
    return value;
  };
};
