// One sample: the application. `node bench/app/sample.mjs <ours|by-hand> <size> <origin> <heap>`
import { batch } from '../support/frames.mjs';
import { fillHeap } from '../support/live-heap.mjs';
import { counter } from '../support/measure.mjs';

const [name, size, origin, heap] = process.argv.slice(2);
const { run } = await import(`./${name}.mjs`);
fillHeap(Number(heap));

const { frameBytes } = batch({ size: Number(size), kind: 'text', protocol: 'plain' });
const { take, result } = counter({ frameBytes });
/** The first windows, which both versions must compute alike. */
const windows = [];
let large = 0;
run({
  origin,
  path: `/${size}/text/plain`,
  onWindow: (summary) => {
    if (windows.length < 20) windows.push({ ...summary, large });
  },
  onTransaction: (isLarge) => {
    if (isLarge) large += 1;
    take(1);
  },
});
console.log(JSON.stringify({ ...(await result), windows }));
process.exit();
