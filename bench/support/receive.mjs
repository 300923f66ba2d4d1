// A sample of receiving: opens one peer, counts, and prints the figures.
import { open, peers } from '../peers/index.mjs';
import { batch } from './frames.mjs';
import { fillHeap } from './live-heap.mjs';
import { counter } from './measure.mjs';

/** Receives until the counter has enough frames, prints the figures, and exits. `heap` is the size of the live objects in MB. */
export const receive = async ({ name, origin, size, mode, kind = 'text', heap = 0, windows }) => {
  const protocol = peers[name].protocol ?? 'plain';
  fillHeap(heap);
  const { frameBytes } = batch({ size, kind, protocol });
  const { take, takeBytes, result } = counter({ frameBytes, ...windows });
  await open(name, { origin, path: `/${size}/${kind}/${protocol}`, mode, size, take, takeBytes });
  console.log(JSON.stringify({ peer: name, size, mode, kind, ...(await result) }));
  process.exit();
};
