// Leaks on purpose: they show that the soak detects leaks.
import { openSync } from 'node:fs';

const held = [];
const twice = (create) => [create(), create()];
const leaks = {
  // Numbers need much memory, and the garbage collector doesn't scan them.
  heap: () => held.push(Array.from({ length: 50_000 }, (_, n) => n + 0.5)),
  handle: () => held.push(...twice(() => setInterval(() => {}, 2 ** 30))),
  fd: () => held.push(...twice(() => openSync('/dev/null'))),
};

/** Leaks one unit of each named resource with each call. */
export const leak = (names) => {
  for (const name of names) leaks[name]();
};

export const leakNames = Object.keys(leaks);
