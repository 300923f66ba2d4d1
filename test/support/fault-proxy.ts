import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { type FaultConnection, faultConnection, type Faults } from './fault-connection.js';
import { seededRandom } from './fault-random.js';

export type { Faults } from './fault-connection.js';
export type { Cut, Flow } from './fault-flow.js';

/** A bad network before a service: a TCP proxy on loopback that does to each connection what it is told to. */
export interface FaultProxy extends AsyncDisposable {
  readonly port: number;
  /** How many connections there have been. */
  readonly connections: number;
  /** How many there are that the client has neither ended nor lost. */
  readonly open: number;
  /** The port of the service; without one, connections are refused. */
  target: number | undefined;
  /** From now on swallows both ways what is open now. */
  halfOpen(): void;
  /** Resets what is open now (RST). */
  reset(): void;
  /** Ends what is open now (FIN), both ways. */
  end(): void;
}

export interface FaultProxyOptions {
  readonly target?: number;
  /** Says what becomes of the n-th connection (1, 2, …). @defaultValue nothing */
  readonly faults?: (connection: number) => Faults;
  /** From 0 up to 1; it is asked twice for each connection, which makes the rest from that. @defaultValue a fixed seed */
  readonly random?: () => number;
  /** How long a connection may wait for the next one (`connectAfter`), in ms. @defaultValue 250 */
  readonly holdMs?: number;
}

/** Starts the proxy. Disposing it closes every socket and timer. */
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
    const fate = faults((connections += 1));
    const draws = [random(), random()].map((draw) => seededRandom(draw * 2 ** 32)) as [() => number, () => number];
    const connection = faultConnection(client, fate, draws);
    all.add(connection);
    const joinThoseBefore = joinBefore;
    joinBefore = () => undefined;

    const join = async (): Promise<void> => {
      clearTimeout(timer);
      if (fate.refuse === true || proxy.target === undefined) connection.reset();
      else await connection.join(proxy.target);
      joinThoseBefore();
    };
    let timer: NodeJS.Timeout | undefined;
    if (fate.connectAfter === 'next') {
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

  const openOnes = (): FaultConnection[] => [...all].filter(({ isOpen }) => isOpen);
  const proxy: FaultProxy = {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get open() {
      return openOnes().length;
    },
    target,
    halfOpen: () => openOnes().forEach((connection) => connection.halfOpen()),
    reset: () => openOnes().forEach((connection) => connection.reset()),
    end: () => openOnes().forEach((connection) => connection.end()),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const connection of all) connection.destroy();
      await closed;
    },
  };
  return proxy;
};
