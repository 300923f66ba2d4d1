// A server of the example as in production: the environment contains the address of a service.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const start = fileURLToPath(new URL('../start.mjs', import.meta.url));

/** Starts a server on a port. It connects to the service at once. */
export const startServer = async (port, env) => {
  const args = [start, '--port', String(port)];
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
    exited.then(() => fail(new Error(`A server exited:\n${output}`)), fail);
  });
  return {
    port,
    /** Stops the server with SIGTERM, and returns how long that took, in ms. */
    end: async () => {
      const startedAt = performance.now();
      program.kill('SIGTERM');
      await exited;
      return performance.now() - startedAt;
    },
  };
};
