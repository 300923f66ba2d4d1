import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { EngineLogOptions } from '../../src/log/engine-log.js';
import type { FeedLog } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { redisLog } from '../../src/redis/index.js';
import { type RealServer } from '../cluster/support/real-server.js';

/** A process that opens logs over a connection of its own. */
export interface LogClient {
  readonly open: (name: string, options?: Omit<EngineLogOptions, 'name'>) => FeedLog;
  /** Closes the connection like its owner. */
  readonly close: () => Promise<unknown>;
  /** How many messages or commands it has sent. */
  readonly sent: () => number;
}

/** Does to the data of a log what another program could do. */
export interface Intruder {
  readonly publish: (name: string, bytes: Buffer) => Promise<unknown>;
  /** Removes the newest message of the log. */
  readonly removeNewest: (name: string) => Promise<unknown>;
  readonly setCursor: (name: string, consumer: string, text: string) => Promise<unknown>;
  readonly removeCursors: (name: string) => Promise<unknown>;
}

/** A kind of server that stores logs. */
export interface LogServer {
  readonly title: string;
  /** The key of the cursor of a consumer. */
  readonly cursorKey: (name: string, consumer: string) => string;
  readonly connect: (server: RealServer, options?: object) => Promise<LogClient>;
  readonly intrude: (server: RealServer) => Promise<Intruder>;
}

const nats: LogServer = {
  title: 'JetStream',
  cursorKey: (name, consumer) => `${name}.${consumer}`,
  connect: async (server, options) => {
    const connection = await server.nats(options);
    return {
      open: (name, more) => jetStreamLog(connection, { name, ...more }),
      close: () => connection.close(),
      sent: () => connection.stats().outMsgs,
    };
  },
  intrude: async (server) => {
    const connection = await server.nats();
    const { streams } = await jetstreamManager(connection);
    return {
      publish: async (name, bytes) => {
        connection.publish(`rtf.log.${name}.feed`, bytes);
        connection.publish(`rtf.log.${name}.again`, bytes);
        return connection.flush();
      },
      removeNewest: async (name) => {
        const { state } = await streams.info(`RTF_LOG_${name}`);
        return streams.deleteMessage(`RTF_LOG_${name}`, state.last_seq);
      },
      setCursor: async (name, consumer, text) => {
        const bucket = await new Kvm(connection).open('rtf-cursors');
        return bucket.put(`${name}.${consumer}`, text);
      },
      removeCursors: () => streams.delete('KV_rtf-cursors'),
    };
  },
};

const redis: LogServer = {
  title: 'Redis',
  cursorKey: (name, consumer) => `rtf:log:{${name}}:cursor:${consumer}`,
  connect: (server, options) => {
    const connection = server.redis(options);
    let sent = 0;
    const send = connection.sendCommand.bind(connection);
    connection.sendCommand = (...args) => {
      sent += 1;
      return send(...args);
    };
    return Promise.resolve({
      open: (name, more) => redisLog(connection, { name, ...more }),
      close: () => connection.quit(),
      sent: () => sent,
    });
  },
  intrude: (server) => {
    const connection = server.redis();
    return Promise.resolve({
      publish: (name, bytes) => connection.xadd(`rtf:log:{${name}}`, '*', 'b', bytes),
      removeNewest: async (name) => {
        const key = `rtf:log:{${name}}`;
        const [newest] = await connection.xrevrange(key, '+', '-', 'COUNT', 1);
        return connection.xdel(key, newest?.[0] ?? '');
      },
      setCursor: (name, consumer, text) =>
        connection.hset(redis.cursorKey(name, consumer), { revision: Date.now() * 2_000, value: text }),
      removeCursors: async (name) => connection.del(...(await connection.keys(`rtf:log:{${name}}:cursor:*`))),
    });
  },
};

export const logServers = { nats, redis } as const;
