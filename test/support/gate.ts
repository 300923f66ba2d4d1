import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to a connection: it is forwarded to a port, reset, ended, answered with garbage, or never answered. */
export type Fate = { readonly port: number } | 'reset' | 'end' | 'garbage' | 'silence';

/** A TCP server in front of services. The n-th connection receives the n-th fate; the last one repeats. */
export interface Gate extends AsyncDisposable {
  readonly port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** The open connections, in the order of arrival. */
  readonly open: ReadonlySet<Socket>;
}

/** Starts a gate on loopback. */
export const startGate = async (fates: readonly Fate[]): Promise<Gate> => {
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    open.add(client);
    client.on('close', () => open.delete(client)).on('error', () => undefined);
    const fate = fates[Math.min(connections, fates.length - 1)] as Fate;
    connections += 1;
    if (typeof fate === 'object') forward(client, fate.port);
    else answers[fate](client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    open,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};

const answers: Readonly<Record<Extract<Fate, string>, (client: Socket) => void>> = {
  reset: (client) => client.resetAndDestroy(),
  end: (client) => client.resume().end(),
  garbage: (client) => client.resume().write('what is this?\r\n'.repeat(10)),
  silence: (client) => client.resume(),
};

const forward = (client: Socket, port: number): void => {
  const service = connect(port, '127.0.0.1');
  service.on('error', () => client.destroy()).on('close', () => client.destroy());
  client.on('close', () => service.destroy());
  client.pipe(service).pipe(client);
};

/** Returns the port of an address. */
export const portOf = (url: string): number => Number(new URL(url).port);
