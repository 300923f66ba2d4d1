import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type FaultConnection, faultConnection, type Faults } from './fault-connection.js';
import { seededRandom } from './fault-random.js';

export type { Faults } from './fault-connection.js';
export type { Cut, Flow } from './fault-flow.js';

/** A faulty network in front of a service: a TCP proxy on loopback with configurable faults for each connection. */
export interface FaultProxy extends AsyncDisposable {
  readonly port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** The number of connections whose client side is open. */
  readonly open: number;
  /** The port of the service. Without one, connections are refused. */
  target: number | undefined;
  /** Makes all open connections discard everything in both directions. */
  halfOpen(): void;
  /** Resets all open connections (RST). */
  reset(): void;
  /** Ends all open connections (FIN) in both directions. */
  end(): void;
}

export interface FaultProxyOptions {
  readonly target?: number;
  /** Returns the faults of the n-th connection (1, 2, …). @defaultValue none */
  readonly faults?: (connection: number) => Faults;
  /** Returns a number from 0 up to 1. Called twice for each connection, to seed its two directions. @defaultValue a fixed seed */
  readonly random?: () => number;
  /** How long a connection waits for the next one (`connectAfter`), in ms. @defaultValue 250 */
  readonly holdMs?: number;
}

/** Starts the proxy. Disposing it closes all sockets and timers. */
export const startFaultProxy = async ({
  target,
  faults = () => ({}),
  random = seededRandom(1),
  holdMs = 250,
}: FaultProxyOptions): Promise<FaultProxy> => {
  const all = new Set<FaultConnection>();
  let connections = 0;
  let joinBefore = (): void => undefined;

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (client) => {
    const own = faults((connections += 1));
    const draws = [random(), random()].map((draw) => seededRandom(draw * 2 ** 32)) as [() => number, () => number];
    const connection = faultConnection(client, own, draws);
    all.add(connection);
    const joinPrevious = joinBefore;
    joinBefore = () => undefined;

    const join = async (): Promise<void> => {
      clearTimeout(timer);
      if (own.refuse === true || proxy.target === undefined) connection.reset();
      else await connection.join(proxy.target);
      joinPrevious();
    };
    let timer: NodeJS.Timeout | undefined;
    if (own.connectAfter === 'next') {
      let isJoined = false;
      joinBefore = () => {
        if (!isJoined) void join();
        isJoined = true;
      };
      timer = setTimeout(joinBefore, holdMs);
    } else void join();
    void connection.gone.then(() => {
      clearTimeout(timer);
      all.delete(connection);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const openConnections = (): FaultConnection[] => [...all].filter(({ isOpen }) => isOpen);
  const proxy: FaultProxy = {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get open() {
      return openConnections().length;
    },
    target,
    halfOpen: () => openConnections().forEach((connection) => connection.halfOpen()),
    reset: () => openConnections().forEach((connection) => connection.reset()),
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
