import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What becomes of one connection: it goes on to a service, or is reset, ended, answered with something else, or left alone. */
export type Fate = { readonly port: number } | 'reset' | 'end' | 'garbage' | 'silence';

/** A door before services: the n-th connection meets the n-th fate (the last one repeats). */
export interface Gate extends AsyncDisposable {
  readonly port: number;
  /** How many connections there have been. */
  readonly connections: number;
  /** Those that are open now, in the order in which they came. */
  readonly open: ReadonlySet<Socket>;
}

/** Opens a gate on loopback. */
export const startGate = async (fates: readonly Fate[]): Promise<Gate> => {
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    open.add(client);
    client.on('close', () => open.delete(client)).on('error', () => undefined);
    const fate = fates[Math.min(connections, fates.length - 1)] as Fate;
    connections += 1;
    if (typeof fate === 'object') passOn(client, fate.port);
    else meet[fate](client);
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

const meet: Readonly<Record<Extract<Fate, string>, (client: Socket) => void>> = {
  reset: (client) => client.resetAndDestroy(),
  end: (client) => client.resume().end(),
  garbage: (client) => client.resume().write('what is this?\r\n'.repeat(10)),
  silence: (client) => client.resume(),
};

const passOn = (client: Socket, port: number): void => {
  const service = connect(port, '127.0.0.1');
  service.on('error', () => client.destroy()).on('close', () => client.destroy());
  client.on('close', () => service.destroy());
  client.pipe(service).pipe(client);
};

/** The port of an address. */
export const portOf = (url: string): number => Number(new URL(url).port);
