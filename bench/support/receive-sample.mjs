// One sample: a peer that receives from the flood sender. `node bench/support/receive-sample.mjs <peer> <size> <mode> <origin> <heap> [kind]`
import { receive } from './receive.mjs';

const [name, size, mode, origin, heap, kind] = process.argv.slice(2);
await receive({ name, origin, size: Number(size), mode, heap: Number(heap), kind });
