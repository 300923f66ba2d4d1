// Starts a sender in a separate process, which ends with this one.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Forks a sender. Resolves when it listens, with its first message, its `process`, all later `messages`, and `stop()`.
 *
 * @param name - `flood-sender`, `paced-sender`
 */
export const startSender = (name, args = []) =>
  new Promise((resolve, reject) => {
    const path = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
    const child = fork(path, args.map(String), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [] });
    // The sender exits when it is disconnected, and removes its files.
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
