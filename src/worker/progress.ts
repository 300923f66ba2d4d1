/**
 * The indexes in the memory that both threads share: how many batches the main thread has handled, and whether the worker waits. The
 * main thread sends a message for a handled batch only if the worker waits.
 */
const handled = 0;
const isAwaited = 1;

/** Creates the shared memory. */
export const createProgress = (): Int32Array => new Int32Array(new SharedArrayBuffer(8));

/** Returns how many batches the main thread has handled. The count wraps around after 2^32 batches: use only differences. */
export const handledOf = (progress: Int32Array): number => Atomics.load(progress, handled);

/** Counts a batch as handled. Returns whether the worker waits for a message. */
export const countHandled = (progress: Int32Array): boolean => {
  Atomics.add(progress, handled, 1);
  return Atomics.exchange(progress, isAwaited, 0) === 1;
};

/** Requests a message when the next batch is handled. Then call {@link handledOf} again: a batch may have been handled before the request. */
export const awaitHandled = (progress: Int32Array): void => {
  Atomics.store(progress, isAwaited, 1);
};
