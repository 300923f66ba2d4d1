// One sample: a peer that receives from the flood sender, or from a replayed socket, which has no address. It prints the figures and exits.
//
//   node bench/support/receive-sample.mjs <peer> <size> <mode> <kind> <MB of live objects> [origin]
import { peers } from '../peers/index.mjs';
import { batch } from './frames.mjs';
import { fillHeap } from './live-heap.mjs';
import { counter } from './measure.mjs';

const [peer, sizeText, mode, kind, heap, address] = process.argv.slice(2);
const size = Number(sizeText);
const isReplayed = address === undefined;
const origin = address ?? 'ws://127.0.0.1:8080';
// Before any package is imported: some store the functions of `net`.
if (isReplayed) (await import('../replay/replayed-socket.mjs')).replaySockets(origin);

const { open, isBare, protocol = 'plain' } = peers[peer];
fillHeap(Number(heap));
const { frameBytes } = batch({ size, kind, protocol });
const { take, takeBytes, result } = counter({ frameBytes });
await open({ origin, path: `/${size}/${kind}/${protocol}`, mode, size, take, takeBytes });
const figures = await result;

// No subscriber may receive less than the others. A letter of two bytes has the length 1 in a string.
const whole = kind === 'unicode' && mode === 'text' ? size - 1 : size;
if (!isBare && figures.unitsPerFrame !== whole)
  throw new Error(`${peer}, ${size}, ${mode}, ${kind}: received ${figures.unitsPerFrame} of ${whole} for each frame.`);
console.log(JSON.stringify({ peer, size, ...figures }));
process.exit();
