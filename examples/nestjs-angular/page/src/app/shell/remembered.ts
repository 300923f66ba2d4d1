/** Reads a value from the storage of the browser; `undefined` if there is none, or if the browser blocks the storage. */
export const remembered = (key: string): string | undefined => {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
};

/** Writes a value to the storage of the browser, unless the browser blocks it. */
export const remember = (key: string, value: string): void => {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The storage is blocked or full, so the next load uses the default.
  }
};
