/** The functions to call when the process exits. They share one listener, because Node warns of a leak at more than ten listeners. */
const callbacks = new Set<() => void>();

const callAll = (): void => {
  for (const callback of [...callbacks]) callback();
};

/**
 * Calls a function when the process exits.
 *
 * @returns a function that removes the callback
 */
export const atExit = (callback: () => void): (() => void) => {
  if (callbacks.size === 0) process.on('exit', callAll);
  callbacks.add(callback);
  return () => {
    if (callbacks.delete(callback) && callbacks.size === 0) process.off('exit', callAll);
  };
};
