import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';

/** A server in memory, and the connections to it. It has the commands that the engine uses. */
export interface StubServer {
  readonly connect: () => Redis;
  /** Ends all connections, and rejects commands until `restart`. */
  readonly kill: () => void;
  readonly restart: () => void;
  /** The commands that were received, in order. */
  readonly commands: readonly string[];
  /** Refuses subscriptions, as a server does without the permission. */
  refusal: Error | undefined;
}

interface Stored {
  readonly value: string;
  readonly revision: number;
}

class StubConnection extends EventEmitter {
  status = 'connecting';
  readonly options = {};
  readonly channels = new Set<string>();
}

/** Creates a {@link StubServer}. The script is replaced by the same rules in TypeScript. */
export const stubServer = (): StubServer => {
  const commands: string[] = [];
  const connections: StubConnection[] = [];
  const keys = new Map<string, Stored>();
  let isUp = true;

  const run = async <T>(name: string, command: () => T): Promise<T> => {
    await Promise.resolve();
    if (!isUp) throw new Error('Connection is closed.');
    commands.push(name);
    return command();
  };

  const server: StubServer = {
    commands,
    refusal: undefined,
    connect: () => {
      const connection = new StubConnection();
      connections.push(connection);
      const open = (): void => {
        connection.status = 'ready';
        connection.emit('ready');
      };
      queueMicrotask(open);
      const methods = {
        hmget: (key: string) =>
          run('hmget', () => {
            const stored = keys.get(key);
            return stored ? [stored.value, String(stored.revision)] : [null, null];
          }),
        eval: (_script: string, _count: number, key: string, expected: number | '', value: string) =>
          run('eval', () => {
            const revision = keys.get(key)?.revision;
            if ((revision ?? '') !== expected) return null;
            keys.set(key, { value, revision: (revision ?? 0) + 1 });
            return keys.get(key)?.revision;
          }),
        publish: (channel: string, data: Buffer) =>
          run('publish', () => {
            const receivers = connections.filter(({ channels }) => channels.has(channel));
            for (const each of receivers) queueMicrotask(() => each.emit('messageBuffer', Buffer.from(channel), data));
            return receivers.length;
          }),
        subscribe: (channel: string) =>
          run('subscribe', () => {
            if (server.refusal) throw server.refusal;
            connection.channels.add(channel);
          }),
        unsubscribe: (channel: string) => run('unsubscribe', () => connection.channels.delete(channel)),
      };
      return Object.assign(connection, methods) as unknown as Redis;
    },
    kill: () => {
      isUp = false;
      for (const connection of connections) {
        connection.status = 'close';
        connection.channels.clear();
        connection.emit('close');
      }
    },
    restart: () => {
      isUp = true;
      for (const connection of connections) {
        connection.status = 'ready';
        connection.emit('ready');
      }
    },
  };
  return server;
};
