import { connect } from '@nats-io/transport-node';
import { feedLog } from '../../../src/log/index.ts';
import { jetStreamLog } from '../../../src/nats/index.ts';

/** Opens the log of a place: a folder, or `nats:PORT` for the log `market` of a server on this machine. */
export const logAt = async (place) => {
  const [, port] = /^nats:(\d+)$/.exec(place) ?? [];
  if (port === undefined) return feedLog(place);
  const servers = `127.0.0.1:${port}`;
  return jetStreamLog(await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 }), { name: 'market' });
};

/** Ends the process with the code of a log's error. */
export const endWith = ({ code }) => {
  console.log(code);
  process.exit(1);
};
