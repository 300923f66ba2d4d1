// A server of the example, as it runs in production: with the address of a service in its environment.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const start = fileURLToPath(new URL('../start.mjs', import.meta.url));

/** Starts a server on a port; it connects to the service at once. */
export const startServer = async (port, env) => {
  const args = [start, '--port', String(port), '--connect', 'bootstrap'];
  const program = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(program, 'exit');
  let output = '';
  await new Promise((ready, fail) => {
    const read = (text) => {
      output += text;
      if (/The page is at/.test(output)) ready();
    };
    program.stdout.setEncoding('utf8').on('data', read);
    program.stderr.setEncoding('utf8').on('data', read);
    exited.then(() => fail(new Error(`A server ended:\n${output}`)), fail);
  });
  return {
    port,
    /** Ends it as a deploy does; gives how long that took, in ms. */
    end: async () => {
      const asked = performance.now();
      program.kill('SIGTERM');
      await exited;
      return performance.now() - asked;
    },
  };
};
