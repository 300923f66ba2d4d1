// One sample: a peer that receives from the flood sender. `node bench/e2e/sample.mjs <peer> <size> <mode> <origin> [kind]`
import { receive } from '../support/receive.mjs';

const [name, size, mode, origin, kind] = process.argv.slice(2);
await receive({ name, origin, size: Number(size), mode, kind });
