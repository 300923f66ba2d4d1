import { Socket } from 'node:net';
import { type Flow, type FlowEnd, forward } from './fault-flow.js';

/** The faults of one connection. Without any, all bytes are forwarded at once. */
export interface Faults {
  readonly toClient?: Flow;
  readonly toServer?: Flow;
  /** Closes the connection at once, with RST. */
  readonly refuse?: boolean;
  /** Reorders: connects to the target only after the next connection did, or after a time limit. */
  readonly connectAfter?: 'next';
}

/** One connection through the proxy. */
export interface FaultConnection {
  /** Whether the client's side is still open. */
  readonly isOpen: boolean;
  /** Connects to the target and forwards bytes. Resolves when the connection is established or has failed. */
  join(port: number): Promise<void>;
  /** From now on discards everything in both directions, FIN included. */
  halfOpen(): void;
  /** Sends RST to both sides. */
  reset(): void;
  /** Sends FIN to both sides. Bytes that are not forwarded yet are lost. */
  end(): void;
  destroy(): void;
  /** Resolves when both sockets are closed. */
  readonly gone: Promise<unknown>;
}

/** Creates a connection from the client's socket. `join` connects it to the target. */
export const faultConnection = (
  client: Socket,
  { toClient = {}, toServer = {} }: Faults,
  random: readonly [toClient: () => number, toServer: () => number],
): FaultConnection => {
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
  const halfOpen = (): void => {
    discard();
    // Keep-alive detects a peer that no longer exists; an idle peer stays connected.
    for (const socket of both) socket.setKeepAlive(true, 1_000);
  };
  const end = (): void => {
    discard();
    for (const socket of both) socket.end();
  };

  const flow = (from: Socket, to: Socket, faults: Flow, draw: () => number): void => {
    const ends: Readonly<Record<FlowEnd, () => void>> = {
      'source-ended': () => to.end(),
      // The other direction continues.
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
    // An error on one side resets the other, unless the two are already separated.
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
