// One sample: a peer that receives from the flood sender, or from a replayed socket, which has no address. It prints the figures and exits.
//
//   node bench/receiving/sample.mjs <peer> <size> <mode> <kind> <MB of live objects> [origin]
import { peers } from '../peers/index.mjs';
import { batch } from '../support/frames.mjs';
import { fillHeap } from '../support/live-heap.mjs';
import { counter } from '../support/measure.mjs';

const [peer, sizeText, mode, kind, heap, address] = process.argv.slice(2);
const size = Number(sizeText);
const origin = address ?? 'ws://127.0.0.1:8080';
// Before any package is imported: some store the functions of `net`.
if (address === undefined) (await import('../replay/replayed-socket.mjs')).replaySockets(origin);

fillHeap(Number(heap));
const { take, result } = counter(batch({ size, kind }));
await peers[peer].open({ url: `${origin}/${size}/${kind}`, mode, size, take });
const figures = await result;

// No subscriber may receive less than the others. A letter of two bytes has the length 1 in a string.
const whole = kind === 'unicode' && mode === 'text' ? size - 1 : size;
if (figures.unitsPerFrame !== whole)
  throw new Error(`${peer}, ${size}, ${mode}, ${kind}: received ${figures.unitsPerFrame} of ${whole} for each frame.`);
console.log(JSON.stringify({ peer, size, ...figures }));
process.exit();
