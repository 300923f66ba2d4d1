import { connect, createServer, type Socket } from 'node:net';
import { listen } from './listen.js';

/** What happens to a connection: forwarded to a port, reset, ended, answered with garbage, or never answered. */
export type Fate = { readonly port: number } | 'reset' | 'end' | 'garbage' | 'silence';

export type Gate = Awaited<ReturnType<typeof startGate>>;

/** Starts a TCP server in front of services on loopback. The n-th connection receives the n-th fate; the last one repeats. */
export const startGate = async (fates: readonly Fate[]) => {
  const server = createServer();
  const gate = await listen(server);
  server.on('connection', (client) => {
    const fate = fates[Math.min(gate.connections, fates.length) - 1] as Fate;
    if (typeof fate === 'object') forward(client, fate.port);
    else answers[fate](client);
  });
  return gate;
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

export const portOf = (url: string): number => Number(new URL(url).port);
