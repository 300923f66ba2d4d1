// Starts a program for a test, without the rights of root, and ends it with the test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const nobody = 65_534;
const unprivileged = process.getuid() === 0 ? { uid: nobody, gid: nobody } : {};

/** Makes a folder for a program, which goes with the test. */
export const folderFor = (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-peer-'));
  chmodSync(folder, 0o700);
  if (unprivileged.uid !== undefined) chownSync(folder, nobody, nobody);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Starts a program, which is ended with the test and waited for. */
export const start = (t, command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...unprivileged, ...options });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  const ended = once(child, 'close').then(() => said);
  t.after(async () => {
    // One that is asked ends its workers too.
    child.kill('SIGTERM');
    await ended;
  });
  return { child, ended };
};

/** Finds a port on loopback that is free now. */
export const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
};

/** Waits until somebody listens on a port; fails when the program ends before that. */
export const listens = async (port, { child, ended }) => {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The program ended: ${await ended}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(10);
  }
};
