/** Returns what a function returns, and `undefined` where it throws. */
export const tried = <T>(use: () => T): T | undefined => {
  try {
    return use();
  } catch {
    return undefined;
  }
};
