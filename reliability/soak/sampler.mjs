// What the process holds, after a collection of its garbage.
import { existsSync, readdirSync } from 'node:fs';

const MB = 2 ** 20;
const fdFolder = '/proc/self/fd';
const hasFds = existsSync(fdFolder);

// The list of them opens one itself.
const descriptors = () => (hasFds ? readdirSync(fdFolder).length - 1 : 0);

/** How much is held, by its kind: `TCPSocketWrap`, `Timeout`, …, and file descriptors. */
export const heldNow = () => {
  const held = new Map([['file descriptor', descriptors()]]);
  for (const kind of process.getActiveResourcesInfo()) held.set(kind, (held.get(kind) ?? 0) + 1);
  return held;
};

/** What is held now and was not then, in words; nothing when all was let go. */
export const remaining = (then) =>
  [...heldNow()]
    .map(([kind, count]) => [kind, count - (then.get(kind) ?? 0)])
    .filter(([, more]) => more > 0)
    .map(([kind, more]) => `${more} ${kind}`)
    .join(', ');

/** Takes a sample; file descriptors only where the system lists them. */
export const takeSample = (startedAt, isSettled) => {
  // The buffers that the first one frees are swept beside it, and are gone when the second begins.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  return {
    atS: (performance.now() - startedAt) / 1_000,
    isSettled,
    heap: heapUsed / MB,
    external: external / MB,
    buffers: arrayBuffers / MB,
    rss: rss / MB,
    handles: process.getActiveResourcesInfo().length,
    ...(hasFds && { fds: descriptors() }),
  };
};
