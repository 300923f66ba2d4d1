import { DiscardPolicy, jetstreamManager, type StreamConfig, type StreamState } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineLogOptions } from '../../src/log/engine-log.js';
import type { FeedLog } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { redisLog } from '../../src/redis/index.js';
import type { RealServer } from '../cluster/support/real-server.js';
import { waitFor } from '../support/wait-for.js';

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

/** Lets a server refuse what is appended to a log. Returns a function that lets it take everything again. */
export type Refuse = (server: RealServer, name: string) => Promise<() => Promise<unknown>>;

/** A kind of server that stores logs. */
export interface LogServer {
  readonly title: string;
  /** The key of the cursor of a consumer. */
  readonly cursorKey: (name: string, consumer: string) => string;
  readonly connect: (server: RealServer, options?: object) => Promise<LogClient>;
  readonly intrude: (server: RealServer) => Promise<Intruder>;
  /** Reasons to refuse, and what an error says of each. */
  readonly refusals: Readonly<Record<string, readonly [Refuse, RegExp]>>;
}

const limitStream =
  (limit: (state: StreamState) => Partial<StreamConfig>, original: Partial<StreamConfig>): Refuse =>
  async (server, log) => {
    const { streams } = await jetstreamManager(await server.nats());
    const name = `RTF_LOG_${log}`;
    await streams.update(name, limit((await streams.info(name)).state));
    return () => streams.update(name, original);
  };

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
  refusals: {
    'has no room in the stream': [
      limitStream(({ messages }) => ({ discard: DiscardPolicy.New, max_msgs: messages }), {
        ...{ discard: DiscardPolicy.Old, max_msgs: -1 },
      }),
      /maximum messages exceeded.* The store is full: raise its limit/,
    ],
    'takes no message of that size': [
      limitStream(() => ({ max_msg_size: 10 }), { max_msg_size: -1 }),
      /message size exceeds/,
    ],
  },
};

const configured =
  (...settings: readonly (readonly [name: string, refusing: string, taking: string])[]): Refuse =>
  async (server) => {
    const connection = server.redis();
    for (const [name, refusing] of settings) await connection.config('SET', name, refusing);
    return async () => {
      for (const [name, , taking] of settings) await connection.config('SET', name, taking);
    };
  };

/** Redis takes no writes after it couldn't save a copy. */
const withoutCopy: Refuse = async (server) => {
  const connection = server.redis();
  const [, folder = ''] = (await connection.config('GET', 'dir')) as readonly string[];
  mkdirSync(join(folder, 'dump.rdb'), { recursive: true });
  await connection.config('SET', 'save', '3600 1000000');
  const hasFailed = async () => (await connection.info('persistence')).includes('rdb_last_bgsave_status:err');
  if (!(await hasFailed())) await connection.bgsave();
  await waitFor(hasFailed);
  return () => connection.config('SET', 'save', '');
};

const withoutPermission: Refuse = async (server) => {
  const connection = server.redis();
  await connection.acl('SETUSER', 'default', '-xadd');
  return () => connection.acl('SETUSER', 'default', '+xadd');
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
  refusals: {
    'has no memory': [configured(['maxmemory', '1', '0']), /OOM.* The store is full: raise its limit/],
    "can't save a copy": [withoutCopy, /MISCONF.* The store is full/],
    'gives no permission to write': [withoutPermission, /can't run this command.* Give the user/],
  },
};

export const logServers = { nats, redis } as const;
