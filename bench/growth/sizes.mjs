// One sample: the CPU time of receiving a frame of a size. `node --expose-gc bench/growth/sizes.mjs <bytes> <text|binary>`
import { tradeFeed$ } from '../../dist/index.js';
import { counter } from '../support/measure.mjs';
import { startSender } from '../support/start.mjs';

const [size, kind] = process.argv.slice(2);
const frameBytes = Number(size);
const { port, stop } = await startSender('../growth/size-sender');
const { take, result } = counter({ frameBytes });
const baseUrl = `http://127.0.0.1:${port}/${size}/${kind}/plain`;
let last = 'none';
const classify = (failure) => {
  last = failure.message;
  return failure.verdict;
};
const subscription = tradeFeed$('market', { baseUrl, apiKey: 'bench', classify }).subscribe((frame) =>
  take(kind === 'text' ? frame.text().length : frame.data.length),
);
// A feed reconnects forever, so stop after a minute and print the last failure.
setTimeout(() => {
  console.error(`No result after a minute. The last failure: ${last}`);
  process.exit(1);
}, 60_000).unref();
const figures = await result;
subscription.unsubscribe();
await stop();
console.log(JSON.stringify({ size: frameBytes, kind, ...figures, nsPerByte: figures.ns / frameBytes }));
process.exit();
