import { Socket } from 'node:net';
import { type Flow, type FlowEnd, passOn } from './fault-flow.js';

/** What becomes of one connection; without any of it, all passes through at once. */
export interface Faults {
  readonly toClient?: Flow;
  readonly toServer?: Flow;
  /** Closes the connection at once, with RST. */
  readonly refuse?: boolean;
  /** Reorder: not joined with the target until the next connection has been, or a bounded time is over. */
  readonly connectAfter?: 'next';
}

/** One connection through the proxy. */
export interface FaultConnection {
  /** Whether the client has neither ended nor lost it. */
  readonly isOpen: boolean;
  /** Connects to the target and lets the bytes flow; resolves when that is done or has failed. */
  join(port: number): Promise<void>;
  /** Swallows both ways from now on, ends included. */
  halfOpen(): void;
  /** Sends RST to both sides. */
  reset(): void;
  /** Sends FIN to both sides; what was under way is lost. */
  end(): void;
  destroy(): void;
  /** Resolves when both sockets are closed. */
  readonly gone: Promise<unknown>;
}

/** Makes a connection of the client's socket, not yet joined with anything. */
export const faultConnection = (
  client: Socket,
  { toClient = {}, toServer = {} }: Faults,
  random: readonly [toClient: () => number, toServer: () => number],
): FaultConnection => {
  const service = new Socket({ allowHalfOpen: true }).setNoDelay();
  const both = [client, service];
  const stop = new AbortController();

  const swallow = (): void => {
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
  const halfOpen = (): void => {
    swallow();
    // A side that is gone for good is let go; one that only waits is left to wait.
    for (const socket of both) socket.setKeepAlive(true, 1_000);
  };
  const end = (): void => {
    swallow();
    for (const socket of both) socket.end();
  };

  const flow = (from: Socket, to: Socket, how: Flow, draw: () => number): void => {
    const ends: Readonly<Record<FlowEnd, () => void>> = {
      'source-ended': () => to.end(),
      // The other direction goes on.
      end: () => {
        from.resume();
        to.end();
      },
      reset,
      'half-open': halfOpen,
    };
    passOn(from, to, how, draw, stop.signal).then(
      (why) => !stop.signal.aborted && ends[why](),
      (error: unknown) => {
        if (!stop.signal.aborted) throw error;
      },
    );
  };

  for (const socket of both) {
    // The fault of one side is the fault of the other, while they have to do with each other.
    socket.on('error', () => !stop.signal.aborted && reset());
  }
  return {
    get isOpen() {
      return !client.readableEnded && !client.destroyed;
    },
    join: (port) =>
      new Promise((resolve) => {
        if (stop.signal.aborted) {
          service.destroy();
          return resolve();
        }
        service.once('connect', resolve).once('close', () => resolve());
        service.connect(port, '127.0.0.1');
        flow(client, service, toServer, random[1]);
        flow(service, client, toClient, random[0]);
      }),
    halfOpen,
    reset,
    end,
    destroy,
    gone: Promise.all(both.map((socket) => new Promise((resolve) => socket.once('close', resolve)))),
  };
};
