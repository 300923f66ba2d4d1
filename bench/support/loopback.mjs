// What benchmarks share that receive over loopback: senders in separate processes, which flood each receiver.
import { medianOf, sample } from '../lib/bench.mjs';
import { startSender } from './child.mjs';
import { sizeLabel } from './payloads.mjs';

/** The connections, and their titles. */
export const ways = { plain: 'plain', tls: 'TLS' };

/** Returns where a receiver was measured: the connection, the size of a payload, and the MB of live objects. */
export const placeOf = ({ way, heap = 0, size }) =>
  `${ways[way]}, ${sizeLabel(size)}${heap > 0 ? `, ${heap} MB of live objects` : ''}`;

/** Returns the median CPU time for a frame in ns. */
export const nsOf = (samples) => Number(medianOf(samples, 'ns').toPrecision(3));

/** Starts a sender for each connection. */
export const startLoopback = async () => {
  const senders = { plain: await startSender('flood-sender'), tls: await startSender('flood-sender', ['--tls']) };
  return {
    /** Takes a sample of a program that receives from the sender of a connection. `argsOf` returns its arguments. */
    run: (way, file, argsOf, program) => {
      const { port, caFile } = senders[way];
      const origin = `${way === 'tls' ? 'wss' : 'ws'}://127.0.0.1:${port}`;
      return sample(file, argsOf(origin), { program, env: caFile && { NODE_EXTRA_CA_CERTS: caFile } });
    },
    stop: () => Promise.all(Object.values(senders).map(({ stop }) => stop())),
  };
};
