/** Calls a function and returns its result, or `undefined` if it throws. */
export const tryCall = <T>(call: () => T): T | undefined => {
  try {
    return call();
  } catch {
    return undefined;
  }
};
