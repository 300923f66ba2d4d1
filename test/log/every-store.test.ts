/**
 * @lane brokers
 * @ci
 */
import { afterAll, beforeAll } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jetStreamLog } from '../../src/nats/index.js';
import { redisLog } from '../../src/redis/index.js';
import { describeInstalled, type RealServer, startServer } from '../cluster/support/real-server.js';
import { isAsGoodAsLive } from './every-store.js';
import { plans } from './trade-world.js';

describeInstalled('nats', 'NATS', () => {
  let server: RealServer;
  let connections: Awaited<ReturnType<RealServer['nats']>>[];
  beforeAll(async () => {
    server = await startServer('nats');
    connections = [await server.nats(), await server.nats()];
  });
  afterAll(() => server.stop());

  isAsGoodAsLive(
    'a log on JetStream',
    () => {
      const name = randomUUID();
      return [jetStreamLog(connections[0]!, { name }), jetStreamLog(connections[1]!, { name })];
    },
    plans,
  );
});

describeInstalled('redis', 'Redis', () => {
  let server: RealServer;
  let connections: ReturnType<RealServer['redis']>[];
  beforeAll(async () => {
    server = await startServer('redis');
    connections = [server.redis(), server.redis()];
  });
  afterAll(() => server.stop());

  isAsGoodAsLive(
    'a log on Redis',
    () => {
      const name = randomUUID();
      return [redisLog(connections[0]!, { name }), redisLog(connections[1]!, { name })];
    },
    plans,
  );
});
