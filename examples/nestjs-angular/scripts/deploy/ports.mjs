import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Returns free ports on loopback, below those that the system assigns: no other program receives them meanwhile. */
export const freePorts = async (count) => {
  const ports = new Set();
  while (ports.size < count) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (isFree) await once(server.close(), 'close');
    if (isFree) ports.add(port);
  }
  return [...ports];
};

/** Waits until a process listens on a port. */
export const isListening = async (port) => {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(20);
  }
};
