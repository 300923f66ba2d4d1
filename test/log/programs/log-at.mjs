import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import { feedLog } from '../../../src/log/index.ts';
import { jetStreamLog } from '../../../src/nats/index.ts';
import { redisLog } from '../../../src/redis/index.ts';

/**
 * Opens the log of a place, with a connection of its own: a folder, `nats:PORT,…` for the log `market` that each of these
 * servers on this machine stores, or `redis:PORT`. Also returns a function that closes the connection.
 */
export const connectTo = async (place, options = {}) => {
  const [, kind, ports = ''] = /^(nats|redis):([\d,]+)$/.exec(place) ?? [];
  if (kind === undefined) return { log: feedLog(place, options), close: () => undefined };
  if (kind === 'redis') {
    const redis = new Redis(Number(ports), '127.0.0.1', { retryStrategy: () => 50 });
    redis.on('error', () => undefined);
    return { log: redisLog(redis, { name: 'market', ...options }), close: () => redis.disconnect() };
  }
  const servers = ports.split(',').map((port) => `127.0.0.1:${port}`);
  // The servers may be down just then.
  const patience = { waitOnFirstConnect: true, maxReconnectAttempts: -1, reconnectTimeWait: 50 };
  const connection = await connect({ servers, ...patience });
  const log = jetStreamLog(connection, { name: 'market', replicas: servers.length, ...options });
  return { log, close: () => connection.close() };
};

/** Opens the log of a place. */
export const logAt = async (place, options) => (await connectTo(place, options)).log;

/** Ends the process with the code of a log's error. */
export const endWith = ({ code }) => {
  console.log(code);
  process.exit(1);
};
