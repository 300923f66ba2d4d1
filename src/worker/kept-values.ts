import type { Keeping } from './crossed-error.js';

/** A failure may have one as its cause, and so may the failure before it: those that are older are of no use. */
const mostKept = 64;

/** Keeps what functions of the user's threw on their own thread, so that an observer gets the very same. */
export const keptValues = (): Keeping => {
  const kept = new Map<number, unknown>();
  let newest = 0;
  return {
    idOf: (thrown) => {
      newest += 1;
      kept.set(newest, thrown);
      kept.delete(newest - mostKept);
      return newest;
    },
    byId: (id, message) => (kept.has(id) ? kept.get(id) : new Error(message)),
  };
};
