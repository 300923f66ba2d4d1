// Leaks on purpose: without them nobody would know that the soak can fail.
import { openSync } from 'node:fs';

const held = [];
const twice = (make) => [make(), make()];
const leaks = {
  // Numbers: much to hold, and little to look through.
  heap: () => held.push(Array.from({ length: 50_000 }, (_, n) => n + 0.5)),
  handle: () => held.push(...twice(() => setInterval(() => {}, 2 ** 30))),
  fd: () => held.push(...twice(() => openSync('/dev/null'))),
};

/** Leaks what is named, more with each call. */
export const leak = (names) => {
  for (const name of names) leaks[name]();
};

export const leakNames = Object.keys(leaks);
