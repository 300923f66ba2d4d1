import type { ResumeStore } from '../browser/index.js';

/**
 * Creates a store for the position in the feed. A restart reads the position from memory, a reload from the `sessionStorage` of the tab.
 *
 * The store never throws. If the browser blocks the storage, or it is full, a reload starts with new frames.
 *
 * @param isForReload - whether to use the storage of the tab
 */
export const resumeStore = (isForReload: boolean): ResumeStore => {
  const positions = new Map<string, string>();
  return {
    getItem: (key) => positions.get(key) ?? (isForReload ? inTab((tab) => tab.getItem(key)) : undefined) ?? null,
    setItem: (key, position) => {
      positions.set(key, position);
      if (isForReload) inTab((tab) => tab.setItem(key, position));
    },
  };
};

const inTab = <T>(use: (storage: ResumeStore) => T): T | undefined => {
  try {
    // Reading this property throws if the user blocks the storage of the site.
    const { sessionStorage } = globalThis as { readonly sessionStorage?: ResumeStore };
    return sessionStorage && use(sessionStorage);
  } catch {
    return undefined;
  }
};
