// What the benchmarks of receiving share: a sender in a separate process that floods each receiver over loopback, a new process as well, and
// the tables.
import { measured, medianOf, sample } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { startSender } from './child.mjs';
import { sizeLabel } from './payloads.mjs';

export const receiveSample = new URL('receive-sample.mjs', import.meta.url);

/** The connections, and their titles. */
export const ways = { plain: 'plain', tls: 'TLS' };

/** The sizes of the live heap of a receiver, in MB. */
export const heaps = [0, 200];

/** A cell of the measurement: a connection, the live objects in the receiver, and the size of a payload. */
export const cellId = ({ way, heap, size }) => `${way}/${heap}/${size}`;
export const placeOf = ({ way, heap = 0, size }) =>
  `${ways[way]}, ${sizeLabel(size)}${heap > 0 ? `, ${heap} MB of live objects` : ''}`;

/** Returns all cells of some sizes. The receivers of a cell are measured one after the other, so that their ratio is that of a pair. */
export const cellsOf = (sizes) =>
  Object.keys(ways).flatMap((way) => heaps.flatMap((heap) => sizes.map((size) => ({ way, heap, size }))));

/** Starts both senders. */
export const startLoopback = async () => {
  const senders = { plain: await startSender('flood-sender'), tls: await startSender('flood-sender', ['--tls']) };
  /** Takes a sample of a program that receives from the sender of a connection. `argsOf` returns its arguments. */
  const run = (way, file, argsOf, program) => {
    const { port, caFile } = senders[way];
    const origin = `${way === 'tls' ? 'wss' : 'ws'}://127.0.0.1:${port}`;
    return sample(file, argsOf(origin), { program, env: caFile && { NODE_EXTRA_CA_CERTS: caFile } });
  };
  /**
   * Measures receivers in turn.
   *
   * @param receivers - cells with a `peer` and a `mode`
   * @param node - the program of Node, unless it is this one
   * @returns a function from a receiver to its samples, which are `undefined` if it wasn't measured
   */
  const measure = async ({ receivers, node, ...options }) => {
    const namesOf = ({ way, heap, size, peer, mode }) => [way, heap, size, peer, mode];
    const samplesOf = await measured({
      ...options,
      cells: receivers.map(namesOf),
      run: (way, heap, size, peer, mode) =>
        run(way, receiveSample, (origin) => [peer, size, mode, 'text', heap, origin], peers[peer].program ?? node),
    });
    return (receiver) => samplesOf(...namesOf(receiver));
  };
  return { run, measure, stop: () => Promise.all(Object.values(senders).map(({ stop }) => stop())) };
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
