// Starts programs for a test without root privileges and stops them with the test.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export { freePort } from '../support/free-port.mjs';

const nobody = 65_534;
/** The user of programs that refuse to run as root. */
export const unprivileged = process.getuid() === 0 ? { uid: nobody, gid: nobody } : {};

/** Creates a folder for a program. Deletes it after the test. */
export const folderFor = (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-peer-'));
  chmodSync(folder, 0o700);
  if (unprivileged.uid !== undefined) chownSync(folder, nobody, nobody);
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Starts a program. Stops it after the test. */
export const start = (t, command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...unprivileged, ...options });
  let stderr = '';
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const ended = once(child, 'close').then(() => stderr);
  t.after(async () => {
    // On SIGTERM, a program also stops its workers.
    child.kill('SIGTERM');
    await ended;
  });
  return { child, ended };
};

/** Waits until a program listens on a port. Rejects if it exits first. */
export const listens = async (port, { child, ended }) => {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The program exited: ${await ended}`);
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
