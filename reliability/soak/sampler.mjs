// Samples the resources of the process, after a garbage collection.
import { existsSync, readdirSync } from 'node:fs';

const MB = 2 ** 20;
const fdFolder = '/proc/self/fd';
const hasFds = existsSync(fdFolder);

// Reading the folder opens one descriptor.
const descriptors = () => (hasFds ? readdirSync(fdFolder).length - 1 : 0);

/** Returns the number of active resources by type (`TCPSocketWrap`, `Timeout`, …) and of file descriptors. */
export const heldNow = () => {
  const held = new Map([['file descriptor', descriptors()]]);
  for (const kind of process.getActiveResourcesInfo()) held.set(kind, (held.get(kind) ?? 0) + 1);
  return held;
};

/** Lists the resources that are open now and weren't open before. The text is empty if all were released. */
export const remaining = (before) =>
  [...heldNow()]
    .map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)])
    .filter(([, more]) => more > 0)
    .map(([kind, more]) => `${more} ${kind}`)
    .join(', ');

/** Takes a sample. It has file descriptors only if the system lists them. */
export const takeSample = (startedAt, isStable) => {
  // The first collection frees buffers in a background thread; the second one waits for it.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  return {
    atS: (performance.now() - startedAt) / 1_000,
    isStable,
    heap: heapUsed / MB,
    external: external / MB,
    buffers: arrayBuffers / MB,
    rss: rss / MB,
    handles: process.getActiveResourcesInfo().length,
    ...(hasFds && { fds: descriptors() }),
  };
};
