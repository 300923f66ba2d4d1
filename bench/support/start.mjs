// Starts a sender as a process of its own, which ends with this one.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Forks a sender; resolves when it listens, with what it said then, its `process`, every message so far, and `stop()`.
 *
 * @param name - `flood-sender`, `paced-sender`
 */
export const startSender = (name, args = []) =>
  new Promise((resolve, reject) => {
    const path = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
    const child = fork(path, args.map(String), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] });
    // It ends by itself when nobody listens to it any more, and clears up.
    const stop = () =>
      new Promise((done) => {
        if (!child.connected) return done();
        child.once('exit', () => done()).disconnect();
      });
    const messages = [];
    child.once('error', reject).once('exit', (code) => reject(new Error(`${name} ended with ${code}`)));
    child.on('message', (message) => {
      messages.push(message);
      if (message.type === 'listening') resolve({ ...message, process: child, messages, stop });
    });
  });
