import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A server that was started for the demo. */
export interface Broker {
  readonly name: string;
  /** The address for `--cluster`. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** A program that connects replicas. */
export interface BrokerProgram {
  readonly command: string;
  readonly protocol: string;
  readonly args: (port: number, folder: string) => readonly string[];
}

const programs: readonly BrokerProgram[] = [
  {
    command: 'nats-server',
    protocol: 'nats',
    args: (port, folder) => ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder],
  },
  {
    command: 'redis-server',
    protocol: 'redis',
    args: (port, folder) => ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder, '--save', ''],
  },
];

/**
 * Starts `nats-server`, or `redis-server` without it, on a free port of 127.0.0.1. Resolves with `undefined` if none is installed.
 *
 * @param candidates - the programs to try, in order
 */
export const startBroker = async (candidates: readonly BrokerProgram[] = programs): Promise<Broker | undefined> => {
  for (const program of candidates) {
    const broker = await start(program);
    if (broker !== undefined) return broker;
  }
  return undefined;
};

const start = async ({ command, protocol, args }: BrokerProgram): Promise<Broker | undefined> => {
  const folder = await mkdtemp(join(tmpdir(), 'rx-trade-feed-demo-'));
  const port = await freePort();
  const server = spawn(command, args(port, folder), { stdio: 'ignore' });
  const ended = once(server, 'close').catch(() => undefined);
  const close = async (): Promise<void> => {
    server.kill('SIGKILL');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  if (await accepts(server, port)) return { name: command, url: `${protocol}://127.0.0.1:${port}`, close };
  await close();
  return undefined;
};

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

/** Waits until a server accepts connections. Resolves with `false` if its process ends, or cannot be started. */
const accepts = async (server: ChildProcess, port: number): Promise<boolean> => {
  const state = { hasEnded: false };
  const end = (): void => {
    state.hasEnded = true;
  };
  server.on('error', end).on('exit', end);
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (state.hasEnded) return false;
    if (isOpen) return true;
    await delay(20);
  }
};
