// What each additional follower costs the server: connections that only receive.
import { connect } from '@nats-io/transport-node';
import { fullRates, measurePair, reportFrom, startPair } from './cost.mjs';

const counts = [0, 20, 40];
/** Messages of frames have this number at offset 1, and the number of frames at offset 4: see `src/cluster/messages.ts`. */
const batchKind = 1;

/**
 * Measures the CPU time of the server for a frame, by the number of followers.
 *
 * @returns for each number of frames a message: rows `[followers, ns]`, and the slope in ns for a frame and follower
 */
export const measureSlopes = async (running) => {
  const slopes = [];
  for (const [burst, plan] of Object.entries(fullRates)) {
    const rows = [];
    for (const count of counts) rows.push([count + 1, await measureServer(running, Number(burst), plan, count)]);
    const [[few, least], [many, most]] = [rows[0], rows.at(-1)];
    slopes.push({ burst, rows, perFollowerNs: (most - least) / (many - few) });
  }
  return slopes;
};

const measureServer = async (running, burst, plan, count) => {
  const pair = await startPair(running, burst);
  const followers = await startFollowers(running, pair.account, count);
  // The slowest one decides how fast frames are sent.
  if (count === 0) reportFrom(pair.follower, running.sender, plan);
  const { server } = await measurePair(running, plan, pair);
  for (const connection of followers) await connection.close();
  await pair.kill();
  return server;
};

/** Starts connections that only receive. Tells the sender how many frames have arrived at each of them, on average. */
const startFollowers = async ({ nats, sender }, account, count) => {
  let [frames, reported] = [0, 0];
  const callback = (error, { data }) => {
    if (error) throw error;
    if (data[1] !== batchKind) return;
    frames += new DataView(data.buffer, data.byteOffset).getUint32(4);
    if (frames < reported + count * 500) return;
    reported = frames;
    sender.send({ received: frames / count });
  };
  const connections = [];
  for (let n = 0; n < count; n += 1) {
    const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
    connection.subscribe(`rtf.v1.${account}.feed`, { callback });
    await connection.flush();
    connections.push(connection);
  }
  return connections;
};
