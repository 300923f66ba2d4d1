import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type FaultProxyOptions, type Faults, startFaultProxy } from './fault-proxy.js';

/** One end of a connection, and what it received. */
export interface End {
  readonly socket: Socket;
  readonly chunks: Buffer[];
  readonly arrivedMs: number[];
  text(): string;
  /** Resolves with `FIN` or an error code when the connection ends. */
  readonly ended: Promise<string>;
  /** Resolves when this many bytes have been received. */
  received(bytes: number): Promise<void>;
}

const watch = (socket: Socket): End => {
  const chunks: Buffer[] = [];
  const arrivedMs: number[] = [];
  socket.setNoDelay().on('data', (chunk) => {
    chunks.push(chunk);
    arrivedMs.push(performance.now());
  });
  const size = () => Buffer.concat(chunks).length;
  return {
    socket,
    chunks,
    arrivedMs,
    text: () => Buffer.concat(chunks).toString(),
    ended: new Promise((resolve) => {
      socket
        .once('end', () => resolve('FIN'))
        .once('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
    }),
    received: async (bytes) => {
      while (size() < bytes) await once(socket, 'data');
    },
  };
};

/** Starts a TCP server, a fault proxy in front of it, and clients on demand. */
export const connectThrough = async (
  faults: Faults | ((n: number) => Faults),
  options: Partial<FaultProxyOptions> = {},
) => {
  const services: End[] = [];
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => services.push(watch(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const target = (server.address() as AddressInfo).port;
  const faultsOf = typeof faults === 'function' ? faults : () => faults;
  const proxy = await startFaultProxy({ target, faults: faultsOf, ...options });
  const clients: End[] = [];
  return {
    proxy,
    services,
    client: (): End => {
      const client = watch(connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true }));
      clients.push(client);
      return client;
    },
    /** Waits for the n-th connection and returns the server's end of it. */
    service: async (n = 1): Promise<End> => {
      while (services.length < n) await once(server, 'connection');
      return services[n - 1] as End;
    },
    [Symbol.asyncDispose]: async () => {
      for (const { socket } of [...clients, ...services]) socket.on('error', () => undefined).destroy();
      await proxy[Symbol.asyncDispose]();
      server.close();
    },
  };
};

/** Creates bytes whose values show their position. */
export const kilobytes = (count: number): Buffer =>
  Buffer.from(Array.from({ length: count * 1_024 }, (_, i) => i % 251));
