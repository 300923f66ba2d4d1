// What each additional follower costs the server: connections that only receive.
import { connect } from '@nats-io/transport-node';
import { median } from '../lib/stats.mjs';
import { measurePair, startPair } from './cost.mjs';

/** Fewer frames than for the other figures: each follower receives all of them. */
const regimes = [
  { burst: 1, framesPerSecond: 2_000 },
  { burst: 64, framesPerSecond: 20_000 },
];
const counts = [0, 20, 40];

/**
 * Measures the CPU time of the server for a frame, by the number of followers.
 *
 * @returns for each number of frames a message: rows `[followers, ns]`, and the slope in ns for a frame and follower
 */
export const measureSlopes = async (nats, sender, rounds, seconds) => {
  const slopes = [];
  for (const regime of regimes) {
    const pair = await startPair(nats.port, sender, regime.burst);
    const connections = [];
    const rows = [];
    for (const count of counts) {
      while (connections.length < count) connections.push(await followFeed(nats.port, pair.account));
      const servers = [];
      for (let round = 0; round < rounds; round += 1)
        servers.push((await measurePair({ nats, sender, pair }, regime, seconds)).server);
      rows.push([count + 1, median(servers)]);
    }
    for (const connection of connections) await connection.close();
    await pair.kill();
    const [[few, least], [many, most]] = [rows[0], rows.at(-1)];
    slopes.push({ burst: regime.burst, rows, perFollowerNs: (most - least) / (many - few) });
  }
  return slopes;
};

const followFeed = async (port, account) => {
  const connection = await connect({ servers: `127.0.0.1:${port}` });
  connection.subscribe(`rtf.v1.${account}.feed`, { callback: () => undefined });
  await connection.flush();
  return connection;
};
