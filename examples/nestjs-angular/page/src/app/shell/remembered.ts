/** Reads what this browser remembers; `undefined` where it remembers nothing, or may not. */
export const remembered = (key: string): string | undefined => {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
};

/** Lets this browser remember something, if it may. */
export const remember = (key: string, value: string): void => {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Blocked or full: it is asked again the next time.
  }
};
