import { once } from 'node:events';
import { type AddressInfo, createServer, Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { type Faults, type Flow, type Cut, seededRandom } from './faults.js';

export interface FaultProxyOptions {
  readonly target?: number;
  /** Returns the faults of the n-th connection (1, 2, …). @defaultValue none */
  readonly faults?: (connection: number) => Faults;
  /** Returns a number from 0 up to 1. Called twice for each connection, to seed its two directions. @defaultValue a fixed seed */
  readonly random?: () => number;
}

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

/** Starts a TCP proxy that acts like a bad network before a service. Disposing it closes all sockets and timers. */
export const startFaultProxy = async ({ target, faults = () => ({}), random = seededRandom(1) }: FaultProxyOptions) => {
  const all = new Set<FaultConnection>();
  let connections = 0;

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
    const connectionFaults = faults((connections += 1));
    const connection = faultConnection(client, connectionFaults, [
      seededRandom(random() * 2 ** 32),
      seededRandom(random() * 2 ** 32),
    ]);
    all.add(connection);
    if (connectionFaults.refuse === true || proxy.target === undefined) connection.reset();
    else connection.join(proxy.target);
    void connection.gone.then(() => all.delete(connection));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const openConnections = (): FaultConnection[] => [...all].filter(({ isOpen }) => isOpen());
  const proxy = {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    /** The number of connections whose client side is open. */
    get open() {
      return openConnections().length;
    },
    /** The port of the service. If it's missing, connections are refused. */
    target,
    /** Makes all open connections discard everything in both directions. */
    halfOpen: () => openConnections().forEach((connection) => connection.halfOpen()),
    reset: () => openConnections().forEach((connection) => connection.reset()),
    /** Ends all open connections (FIN) in both directions. */
    end: () => openConnections().forEach((connection) => connection.end()),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const connection of all) connection.destroy();
      await closed;
    },
  };
  return proxy;
};

type FaultConnection = ReturnType<typeof faultConnection>;

/** Creates a connection from the client's socket. `join` connects it to the target. */
const faultConnection = (
  client: Socket,
  { toClient = {}, toServer = {} }: Faults,
  random: readonly [toClient: () => number, toServer: () => number],
) => {
  const service = new Socket({ allowHalfOpen: true }).setNoDelay();
  const both = [client, service];
  const stop = new AbortController();

  const discard = (): void => {
    stop.abort();
    for (const socket of both) socket.removeAllListeners('data').resume();
  };
  const reset = (): void => {
    stop.abort();
    for (const socket of both) socket.resetAndDestroy();
  };
  const destroy = (): void => {
    stop.abort();
    for (const socket of both) socket.destroy();
  };
  /** From now on discards everything in both directions, FIN included. */
  const halfOpen = (): void => {
    discard();
    // Keep-alive detects a peer that no longer exists, but leaves an idle one connected.
    for (const socket of both) socket.setKeepAlive(true, 1_000);
  };
  /** Sends FIN to both sides. Loses bytes that haven't been forwarded yet. */
  const end = (): void => {
    discard();
    for (const socket of both) socket.end();
  };

  const flow = (from: Socket, to: Socket, faults: Flow, draw: () => number): void => {
    const ends: Readonly<Record<FlowEnd, () => void>> = {
      'source-ended': () => to.end(),
      // The other direction carries on.
      end: () => {
        from.resume();
        to.end();
      },
      reset,
      'half-open': halfOpen,
    };
    forward(from, to, faults, draw, stop.signal).then(
      (reason) => !stop.signal.aborted && ends[reason](),
      (error: unknown) => {
        if (!stop.signal.aborted) throw error;
      },
    );
  };

  for (const socket of both) {
    // An error on one side resets the other, unless they're already separated.
    socket.on('error', () => !stop.signal.aborted && reset());
  }
  return {
    isOpen: () => !client.readableEnded && !client.destroyed,
    join: (port: number) => {
      service.connect(port, '127.0.0.1');
      flow(client, service, toServer, random[1]);
      flow(service, client, toClient, random[0]);
    },
    halfOpen,
    reset,
    end,
    destroy,
    gone: Promise.all(both.map((socket) => new Promise((resolve) => socket.once('close', resolve)))),
  };
};

type FlowEnd = 'source-ended' | Cut['how'];

/** Forwards from one socket to another until the source ends or is cut. Rejects when the signal aborts. */
const forward = async (
  from: Socket,
  to: Socket,
  flow: Flow,
  random: () => number,
  signal: AbortSignal,
): Promise<FlowEnd> => {
  const { delayMs = 0, jitterMs = 0, segments = 'as-is', cut } = flow;
  using arrivals = holdArrivals(from, () => delayMs + jitterMs * random(), signal);
  const pace = pacer(flow.bytesPerSecond, signal);
  let left = cut?.afterBytes ?? Infinity;

  for (;;) {
    if (left <= 0) return (cut as Cut).how;
    const first = await arrivals.next();
    if (first === undefined) return 'source-ended';
    await until(first.dueMs, signal);
    const { bytes } = first;
    for (const piece of pieces(bytes.subarray(0, Math.min(left, bytes.length)), flow, random)) {
      await pace(piece.length);
      await write(to, piece, signal);
      left -= piece.length;
      // Keeps the kernel from joining the pieces again.
      if (segments === 'split' || segments === 'drip') await nextTurn(undefined, { signal });
    }
  }
};

/** Pieces per second under a bandwidth limit. */
const ticks = 50;

function* pieces(bytes: Buffer, { segments, bytesPerSecond = Infinity }: Flow, random: () => number) {
  const most = Math.max(1, Math.ceil(bytesPerSecond / ticks));
  for (let at = 0; at < bytes.length;) {
    const size = segments === 'drip' ? 1 : segments === 'split' ? Math.ceil(4_096 ** random()) : Infinity;
    const end = Math.min(bytes.length, at + Math.min(size, most));
    yield bytes.subarray(at, end);
    at = end;
  }
}

// Waits before each piece until the bandwidth allows it. A late timer shortens the next wait.
const pacer = (bytesPerSecond: number | undefined, signal: AbortSignal) => {
  let freeMs = -Infinity;
  return async (bytes: number): Promise<void> => {
    if (bytesPerSecond === undefined) return;
    await until(freeMs, signal);
    freeMs = Math.max(freeMs, performance.now() - 1_000 / ticks) + (bytes / bytesPerSecond) * 1_000;
  };
};

const until = async (atMs: number, signal: AbortSignal): Promise<void> => {
  const ms = atMs - performance.now();
  if (ms > 0) await delay(ms, undefined, { signal });
};

// A failed write also emits an event of the socket, which aborts the signal.
const write = (to: Socket, piece: Buffer, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    to.write(piece, () => (signal.aborted ? reject(signal.reason as Error) : resolve()));
  });

/** Pauses the source above this size, so that its buffers fill up like on a slow network. */
const mostBytes = 1024 * 1024;

/** Reads a socket. Returns each chunk with the time when it's due. Stops reading when disposed of. */
const holdArrivals = (from: Socket, holdMs: () => number, signal: AbortSignal) => {
  const held: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  let size = 0;
  let dueMs = 0;
  let wake = (): void => undefined;

  const onData = (bytes: Buffer): void => {
    dueMs = Math.max(dueMs, performance.now() + holdMs());
    held.push({ bytes, dueMs });
    size += bytes.length;
    if (size > mostBytes) from.pause();
    wake();
  };
  const onEnd = (): void => wake();
  const onAbort = (): void => wake();
  from.on('data', onData).on('end', onEnd).on('close', onEnd).resume();
  signal.addEventListener('abort', onAbort, { once: true });

  return {
    /** Waits for the next chunk; `undefined` at the end of the source. Rejects when the signal aborts. */
    next: async () => {
      while (held.length === 0 && !from.readableEnded && !from.destroyed && !signal.aborted) {
        await new Promise<void>((resolve) => (wake = resolve));
      }
      signal.throwIfAborted();
      const first = held.shift();
      size -= first?.bytes.length ?? 0;
      if (size <= mostBytes) from.resume();
      return first;
    },
    [Symbol.dispose]: () => {
      from.off('data', onData).off('end', onEnd).off('close', onEnd);
      signal.removeEventListener('abort', onAbort);
    },
  };
};
