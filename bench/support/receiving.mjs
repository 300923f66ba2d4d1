// What the benchmarks of receiving share: the contenders and the tables.
import { medianOf } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { sizeLabel } from './payloads.mjs';

/** Arguments of Node. Everything else has the defaults that users have. */
export const nodeArgs = ['--expose-gc'];

/** Bare sockets, which have no text. */
export const bare = ['raw', 'onread'];

/** The peers that show what's possible. A control explains a figure. */
const compared = Object.keys(peers).filter((peer) => !peers[peer].isControl);

/** Returns the peers that can be measured here. */
export const installed = (names = compared) => names.filter((peer) => peers[peer].isHere?.() ?? true);

/** The peers that can't be measured here, as facts of a report. */
export const missingPeers = () => {
  const missing = Object.values(peers).filter(({ isHere }) => isHere && !isHere());
  const listed = missing.map(({ title, whereElse }) => `${title} (${whereElse})`).join(', ');
  return listed && { 'not measured': listed };
};

/** Throws if a peer received less than the others. A letter of two bytes has the length 1 in a string. */
export const checkUnits = ({ peer, size, mode, kind, unitsPerFrame }) => {
  const whole = kind === 'unicode' && mode === 'text' ? size - 1 : size;
  if (!bare.includes(peer) && unitsPerFrame !== whole)
    throw new Error(`${peer}, ${size}, ${mode}, ${kind}: received ${unitsPerFrame} of ${whole} for each frame.`);
};

/** How a receiver uses a frame. */
export const modeTitles = { text: 'as text', bytes: 'as bytes', held: 'held, then as text' };

/** Returns the median CPU time for a frame in ns; `undefined` without samples. */
export const nsOf = (samples) => samples && Number(medianOf(samples, 'ns').toPrecision(3));

/** Returns the table of CPU time, with a row for each peer and mode. `samplesOf` returns the samples of a peer, a size and a mode, if there are any. */
export const receivingTable = (samplesOf, sizes, where = '') => {
  const rows = Object.entries(peers).flatMap(([peer, { title: name, modes }]) =>
    modes.map((mode) => [
      modes.length > 1 || mode !== 'text' ? `${name}, ${modeTitles[mode]}` : name,
      ...sizes.map((size) => nsOf(samplesOf(peer, size, mode))),
    ]),
  );
  const found = rows.filter((row) => row.slice(1).some((value) => value !== undefined));
  return { title: `CPU time a frame, ns${where}`, columns: ['receiver', ...sizes.map(sizeLabel)], rows: found };
};
