import { Holding } from './holding.js';
import { withOwnBytes } from './own-bytes.js';

/**
 * Creates a function that prepares a value for being stored after its `next`, and returns it. For values that are not released one by one.
 *
 * Create one function per subscription, and pass all stored values in order. A value that uses less than 3/4 of its buffer is copied. A frame
 * is copied after its turn, see {@link Holding}; a byte array is copied at once, because its buffer cannot be replaced later.
 */
export const keeper = (): (<T>(value: T) => T) => {
  const holding = new Holding<unknown>();
  return (value) => {
    if (value instanceof Uint8Array) return withOwnBytes(value);
    holding.hold(value);
    return value;
  };
};
