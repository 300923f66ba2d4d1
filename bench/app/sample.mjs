// One sample: the application. `node bench/app/sample.mjs <ours|by-hand> <task> <size> <origin> <heap>`
import { batch } from '../support/frames.mjs';
import { fillHeap } from '../support/live-heap.mjs';
import { counter } from '../support/measure.mjs';
import { wallets } from '../support/payloads.mjs';
import { tasks } from './work.mjs';

const [name, task, size, origin, heap] = process.argv.slice(2);
const { run } = await import(`./${name}.mjs`);
fillHeap(Number(heap));

const { kind } = tasks[task];
const { frameBytes } = batch({ size: Number(size), kind });
const { take, result } = counter({ frameBytes });
/** The first windows, which both versions must compute alike. */
const windows = [];
let large = 0;
run[task]({
  url: `${origin}/${size}/${kind}`,
  wallets,
  onFrame: () => take(1),
  onWindow: (summary) => {
    if (windows.length < 20) windows.push({ ...summary, large });
  },
  onTransaction: (isLarge) => {
    if (isLarge) large += 1;
  },
  // The sender sends one in a thousand of this wallet. A filter that passes others, or loses one, is found by this text, or by its time.
  onWanted: (value) => {
    if (!JSON.stringify(value).includes(wallets[0])) throw new Error('The filter has passed another frame.');
    for (let n = 0; n < 1_000; n += 1) take(1);
  },
});
console.log(JSON.stringify({ ...(await result), windows }));
process.exit();
