// Receiving over loopback: a sender in a separate process floods each receiver, which is a new process as well.
import { measured, sample } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { checkUnits, nodeArgs } from './receiving.mjs';
import { startSender } from './start.mjs';

const file = new URL('receive-sample.mjs', import.meta.url);

/** The connections, and their titles. */
export const ways = { plain: 'plain', tls: 'TLS' };

/** The sizes of the live heap of a receiver, in MB. */
export const heaps = [0, 200];

/** A cell of the measurement: a connection, the live objects in the receiver, and the size of a payload. */
export const cellId = ({ way, heap, size }) => `${way}/${heap}/${size}`;

/** Returns all cells of some sizes. The receivers of a cell are measured one after the other, so that their ratio is that of a pair. */
export const cellsOf = (sizes, someHeaps = heaps) =>
  Object.keys(ways).flatMap((way) => someHeaps.flatMap((heap) => sizes.map((size) => ({ way, heap, size }))));

/** Starts both senders. */
export const startLoopback = async () => {
  const senders = { plain: await startSender('flood-sender'), tls: await startSender('flood-sender', ['--tls']) };
  /** Takes a sample of a program that receives from the sender of a connection. `argsOf` returns its arguments. */
  const run = (way, program, argsOf, options) => {
    const { port, caFile } = senders[way];
    const origin = `${way === 'tls' ? 'wss' : 'ws'}://127.0.0.1:${port}`;
    return sample(program, argsOf(origin), {
      nodeArgs,
      env: caFile ? { NODE_EXTRA_CA_CERTS: caFile } : {},
      ...options,
    });
  };
  /**
   * Measures receivers in turn.
   *
   * @param receivers - cells with a `peer` and a `mode`
   * @param node - the program of Node, unless it is this one
   * @returns a function from a receiver to its samples, which are `undefined` if it wasn't measured
   */
  const measure = async ({ receivers, node = process.execPath, ...options }) => {
    const namesOf = ({ way, heap, size, peer, mode }) => [way, heap, size, peer, mode];
    const samplesOf = await measured({
      ...options,
      cells: receivers.map(namesOf),
      run: async (way, heap, size, peer, mode) => {
        const program = peers[peer].program ?? node;
        const taken = await run(way, file, (origin) => [peer, size, mode, origin, heap], { program });
        checkUnits(taken);
        return taken;
      },
    });
    return (receiver) => samplesOf(...namesOf(receiver));
  };
  return { run, measure, stop: () => Promise.all(Object.values(senders).map(({ stop }) => stop())) };
};
