import { createServer, Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { type Cut, type Faults, type Flow, seededRandom } from './faults.js';
import { listen } from './listen.js';

export interface FaultProxyOptions {
  readonly target?: number;
  /** Returns the faults of the n-th connection (1, 2, …). @defaultValue none */
  readonly faults?: (connection: number) => Faults;
  /** Returns a number from 0 up to 1. Called twice for each connection, to seed its two directions. @defaultValue a fixed seed */
  readonly random?: () => number;
}

/** Starts a TCP proxy that acts like a bad network before a service. Disposing it closes all sockets and timers. */
export const startFaultProxy = async ({ target, faults = () => ({}), random = seededRandom(1) }: FaultProxyOptions) => {
  const all = new Set<ReturnType<typeof faultConnection>>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
  const { port, ...listening } = await listen(server);
  let connections = 0;
  server.on('connection', (client: Socket) => {
    const connectionFaults = faults((connections += 1));
    const [toClient, toServer] = [seededRandom(random() * 2 ** 32), seededRandom(random() * 2 ** 32)];
    const connection = faultConnection(client, connectionFaults, { toClient, toServer });
    all.add(connection);
    if (connectionFaults.refuse === true || proxy.target === undefined) connection.reset();
    else connection.join(proxy.target);
    void connection.gone.then(() => all.delete(connection));
  });

  const openConnections = () => [...all].filter(({ isOpen }) => isOpen());
  const proxy = {
    port,
    /** The number of connections whose client side is open. */
    get open() {
      return openConnections().length;
    },
    /** The port of the service. If it's missing, connections are refused. */
    target,
    /** Makes all open connections discard everything in both directions. */
    halfOpen: () => openConnections().forEach((connection) => connection['half-open']()),
    reset: () => openConnections().forEach((connection) => connection.reset()),
    /** Ends all open connections (FIN) in both directions. */
    end: () => openConnections().forEach((connection) => connection.end()),
    [Symbol.asyncDispose]: async () => {
      for (const connection of all) connection.destroy();
      await listening[Symbol.asyncDispose]();
    },
  };
  return proxy;
};

/** Creates a connection from the client's socket. `join` connects it to the target. */
const faultConnection = (
  client: Socket,
  { toClient = {}, toServer = {} }: Faults,
  random: Readonly<Record<'toClient' | 'toServer', () => number>>,
) => {
  const service = new Socket({ allowHalfOpen: true }).setNoDelay();
  const both = [client, service];
  const stop = new AbortController();
  /** Stops forwarding, then does the same to both sockets. What hasn't been forwarded is lost. */
  const toBoth = (act: (socket: Socket) => unknown) => (): void => {
    stop.abort();
    for (const socket of both) act(socket.removeAllListeners('data').removeAllListeners('end').resume());
  };
  const ends = {
    reset: toBoth((socket) => socket.resetAndDestroy()),
    end: toBoth((socket) => socket.end()),
    // Discards everything, FIN included. Keep-alive detects a peer that no longer exists, but leaves an idle one connected.
    'half-open': toBoth((socket) => socket.setKeepAlive(true, 1_000)),
  };
  const flow = (from: Socket, to: Socket, faults: Flow, draw: () => number): void => {
    const write = sender(to, faults, draw, stop.signal);
    const cutAfter = faults.cut?.afterBytes ?? Infinity;
    let sent = 0;
    const forward = async (bytes: Buffer): Promise<void> => {
      const part = bytes.subarray(0, cutAfter - sent);
      await write(part);
      sent += part.length;
      if (stop.signal.aborted) return;
      from.resume();
      if (sent < cutAfter) return;
      const { how } = faults.cut as Cut;
      if (how !== 'end') ends[how]();
      // The other direction carries on.
      else to.end();
    };
    let isForwarded = Promise.resolve();
    // A read at a time, so that the buffers of the source fill up like on a slow network.
    from.on('data', (bytes) => {
      from.pause();
      isForwarded = forward(bytes).catch((error: unknown) => {
        if (!stop.signal.aborted) throw error;
      });
    });
    from.on('end', () => void isForwarded.then(() => stop.signal.aborted || to.end()));
  };

  for (const socket of both) {
    // An error on one side resets the other, unless they're already separated.
    socket.on('error', () => !stop.signal.aborted && ends.reset());
  }
  return {
    ...ends,
    isOpen: () => !client.readableEnded && !client.destroyed,
    join: (port: number) => {
      service.connect(port, '127.0.0.1');
      flow(client, service, toServer, random.toServer);
      flow(service, client, toClient, random.toClient);
      client.resume();
    },
    destroy: toBoth((socket) => socket.destroy()),
    gone: Promise.all(both.map((socket) => new Promise((resolve) => socket.once('close', resolve)))),
  };
};

/** Pieces per second under a bandwidth limit. */
const ticks = 50;

/** Returns a function that writes bytes to a socket late, slowly and in pieces. Rejects when the signal aborts. */
const sender = (to: Socket, flow: Flow, random: () => number, signal: AbortSignal) => {
  const { delayMs = 0, jitterMs = 0, segments = 'as-is', bytesPerSecond = Infinity } = flow;
  const most = Math.max(1, Math.ceil(bytesPerSecond / ticks));
  const wait = async (ms: number) => ms > 0 && delay(ms, undefined, { signal });
  return async (bytes: Buffer): Promise<void> => {
    await wait(delayMs + jitterMs * random());
    for (let at = 0; at < bytes.length;) {
      const size = segments === 'drip' ? 1 : segments === 'split' ? Math.ceil(4_096 ** random()) : Infinity;
      const piece = bytes.subarray(at, at + Math.min(size, most));
      at += piece.length;
      await wait((piece.length / bytesPerSecond) * 1_000);
      // A failed write also emits an event of the socket, which aborts the signal.
      await new Promise((resolve) => to.write(piece, resolve));
      signal.throwIfAborted();
      // Keeps the kernel from joining the pieces again.
      if (segments !== 'as-is') await nextTurn(undefined, { signal });
    }
  };
};
