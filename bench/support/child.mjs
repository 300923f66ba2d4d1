// A program of a benchmark in a separate process. It exits when this process ends or disconnects it, and then removes its files.
import { fork } from 'node:child_process';
import { once } from 'node:events';

/**
 * Forks a program that sends messages with a `type`.
 *
 * @param file - a `file:` URL
 * @param options - `env`: additional environment variables; `execArgv`: options of Node
 */
export const startChild = (file, args = [], { env, execArgv = [] } = {}) => {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
  const child = fork(file, args.map(String), { stdio, execArgv, env: { ...process.env, ...env } });
  const messages = [];
  child.on('message', (message) => messages.push(message));
  const exited = once(child, 'exit');
  const of = (type) => messages.filter((message) => message.type === type);
  /** Waits for the message of a type after the first `count`. */
  const next = async (type, count = 0) => {
    while (of(type).length <= count) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${file} has ended.`);
      await Promise.race([once(child, 'message'), exited]);
    }
    return of(type)[count];
  };
  return {
    messages,
    /** Resolves with the exit code and the signal. */
    exited,
    next,
    send: (message) => child.send(message),
    /** Calls a function with each message of a type. */
    on: (type, listener) => void child.on('message', (message) => message.type === type && listener(message)),
    /** Asks for a report and waits for it. */
    report: () => {
      child.send('report');
      return next('report', of('report').length);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
    stop: async () => {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
};

/** Starts a program whose first message is `listening`. Resolves with this message and its process. */
export const startListening = async (file, args, options) => {
  const child = startChild(file, args, options);
  return { ...(await child.next('listening')), ...child };
};

/** Starts a sender of this folder: `flood-sender` (port, caFile) or `paced-sender` (baseUrl). */
export const startSender = (name, args) => startListening(new URL(`${name}.mjs`, import.meta.url), args);
