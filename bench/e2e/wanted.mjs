// The ratios that e2e must reach: the CPU time of a peer for a frame, divided by ours. The frames are read as text.
import { sizes } from '../support/payloads.mjs';

const bySize = (...ratios) => Object.fromEntries(sizes.map((size, n) => [size, ratios[n]]));
const overTls = { plain: bySize(), tls: { 4096: 0.9, 65_536: 0.9 } };
const overBun = { plain: bySize(2.3, 1.9, 1.1, 0.9), tls: bySize(1.6, 0.9, 0.5, 0.4) };

/** By peer, by the MB of live objects in the receiver, by the connection, by the size of a payload. */
export const wanted = {
  ws: {
    0: { plain: bySize(3, 2.4, 2.1, 2.5), tls: bySize(2.5, 1.5, 1.4, 1.3) },
    200: { plain: bySize(3, 2, 1.8, 2.5), tls: bySize(2.4, 1.5, 1.4, 1.3) },
  },
  raw: { 0: overTls, 200: overTls },
  bun: { 0: overBun, 200: overBun },
};

/** Returns the wanted ratio of a peer in a cell, or `undefined` if there is none. */
export const wantedOf = (peer, { way, heap, size }) => wanted[peer]?.[heap]?.[way]?.[size];
