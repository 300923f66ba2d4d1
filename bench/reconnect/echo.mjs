// Asks an echo behind the relay how long a round trip is.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../support/stamp.mjs';
import { median } from '../lib/stats.mjs';

const TIMES = 40;

/** The round trip in ms: the median, and the least. */
export const roundTripOf = async (port) => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const took = [];
  for (let n = 0; n < TIMES; n += 1) {
    const sentUs = nowUs();
    socket.write('a word');
    await once(socket, 'data');
    took.push((nowUs() - sentUs) / 1000);
    await sleep(7);
  }
  socket.destroy();
  // The first had to wait for the connection as well.
  const others = took.slice(1);
  return { median: median(others), least: Math.min(...others) };
};
