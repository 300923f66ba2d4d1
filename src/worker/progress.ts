/**
 * How far the main thread has come, in memory that both threads see: an acknowledgement costs no message, unless the worker waits for it.
 */
const handled = 0;
const isAwaited = 1;

/** Makes the shared memory of it. */
export const createProgress = (): Int32Array => new Int32Array(new SharedArrayBuffer(8));

/** How many batches the main thread has handled. Wraps round after 2^32 of them: only differences count. */
export const handledOf = (progress: Int32Array): number => Atomics.load(progress, handled);

/** Counts a batch as handled; gives whether the worker waits to be told. */
export const countHandled = (progress: Int32Array): boolean => {
  Atomics.add(progress, handled, 1);
  return Atomics.exchange(progress, isAwaited, 0) === 1;
};

/** Asks to be told of the next batch that is handled. Look at {@link handledOf} again afterwards: it may have been handled meanwhile. */
export const awaitHandled = (progress: Int32Array): void => {
  Atomics.store(progress, isAwaited, 1);
};
