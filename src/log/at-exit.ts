// They share one listener, because Node warns of a leak at more than ten.
const callbacks = new Set<() => void>();

const callAll = (): void => {
  for (const callback of [...callbacks]) callback();
};

/** Calls a function when the process exits. Returns a function that removes it. */
export const atExit = (callback: () => void): (() => void) => {
  if (callbacks.size === 0) process.on('exit', callAll);
  callbacks.add(callback);
  return () => {
    if (callbacks.delete(callback) && callbacks.size === 0) process.off('exit', callAll);
  };
};
