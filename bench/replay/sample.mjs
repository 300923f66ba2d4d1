// One sample: a peer that receives from a replayed socket. `node bench/replay/sample.mjs <peer> <size> <mode> [kind] [short]`
import { replaySockets } from './replayed-socket.mjs';

const [name, size, mode, kind, length] = process.argv.slice(2);
const origin = 'ws://127.0.0.1:8080';
// Before any peer is imported: some store the functions of `net`.
replaySockets(origin);
const { receive } = await import('../support/receive.mjs');
const windows = length === 'short' ? { warmUpMs: 200, countedMs: 100 } : {};
await receive({ name, origin, size: Number(size), mode, kind, windows });
