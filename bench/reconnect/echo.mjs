// Measures a round trip through the relay with an echo server.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../support/stamp.mjs';
import { median } from '../lib/stats.mjs';

const TIMES = 40;

/** Measures the round trip in ms. Resolves with the median and the minimum. */
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
  // The first one includes the time to connect.
  const others = took.slice(1);
  return { median: median(others), min: Math.min(...others) };
};
