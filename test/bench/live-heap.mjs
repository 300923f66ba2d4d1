// Prints by how many MB the live objects of the benchmarks make the heap grow. `node --expose-gc test/bench/live-heap.mjs <MB>`
import { fillHeap } from '../../bench/support/live-heap.mjs';

const used = () => {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
};
const before = used();
fillHeap(Number(process.argv[2]));
console.log(JSON.stringify({ grown: (used() - before) / 2 ** 20 }));
