import type { ResumeStore } from '../browser/index.js';

/**
 * Remembers the place in the feed: for a restart, and in the `sessionStorage` of the tab for a reload of the page.
 *
 * Never throws. Where the browser blocks its storage, or has no room, a reload begins with what comes then.
 *
 * @param isForReload - whether the storage of the tab is used at all
 */
export const resumeStore = (isForReload: boolean): ResumeStore => {
  const places = new Map<string, string>();
  return {
    getItem: (key) => places.get(key) ?? (isForReload ? inTab((tab) => tab.getItem(key)) : undefined) ?? null,
    setItem: (key, place) => {
      places.set(key, place);
      if (isForReload) inTab((tab) => tab.setItem(key, place));
    },
  };
};

const inTab = <T>(use: (storage: ResumeStore) => T): T | undefined => {
  try {
    // To read the property alone throws where the user blocks the storage of a site.
    const { sessionStorage } = globalThis as { readonly sessionStorage?: ResumeStore };
    return sessionStorage && use(sessionStorage);
  } catch {
    return undefined;
  }
};
