import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Returns a free port on loopback for a program that can't choose one itself, or that gives its port up and takes it
 * back. It's below the ports that the system assigns (32 768 and above on Linux), so no other test gets it meanwhile.
 */
export const freePort = async () => {
  const server = createServer().listen(randomInt(10_000, 32_000), '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return freePort();
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
};
