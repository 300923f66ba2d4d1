import { connect } from '@nats-io/transport-node';
import { feedLog } from '../../../src/log/index.ts';
import { jetStreamLog } from '../../../src/nats/index.ts';

/** Opens the log of a place: a folder, or `nats:PORT,…` for the log `market` that each of these servers on this machine stores. */
export const logAt = async (place, options = {}) => {
  const [, ports] = /^nats:([\d,]+)$/.exec(place) ?? [];
  if (ports === undefined) return feedLog(place, options);
  const servers = ports.split(',').map((port) => `127.0.0.1:${port}`);
  const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  return jetStreamLog(connection, { name: 'market', replicas: servers.length, ...options });
};

/** Ends the process with the code of a log's error. */
export const endWith = ({ code }) => {
  console.log(code);
  process.exit(1);
};
