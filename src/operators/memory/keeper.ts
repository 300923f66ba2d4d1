import { Holding } from './holding.js';
import { withOwnBytes } from './own-bytes.js';

/**
 * Creates a function that returns a value which can be held after its `next`. For values that are not released one by one.
 *
 * Create one function per subscription, and pass all held values in order. After their turn, frames get buffers of exactly their size; see
 * {@link Holding}. A byte array is copied at once, because its buffer cannot be replaced later.
 */
export const keeper = (): (<T>(value: T) => T) => {
  const holding = new Holding<unknown>();
  return (value) => {
    if (value instanceof Uint8Array) return withOwnBytes(value);
    holding.hold(value);
    return value;
  };
};
