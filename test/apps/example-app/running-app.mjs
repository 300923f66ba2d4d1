// Starts the example app like `npm start`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Starts the app on a free port. Resolves when the app has printed its address. */
export const startApp = async ({ folder, node, env }, { args = [], variables = {} } = {}) => {
  const program = spawn(node, ['scripts/start.mjs', '--port', '0', ...args], {
    cwd: folder,
    env: { ...env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(program, 'exit');
  let output = '';
  const url = await new Promise((found, fail) => {
    const read = (text) => {
      output += text;
      const [, address] = /The page is at (http:\S+)/.exec(output) ?? [];
      if (address !== undefined) found(address);
    };
    program.stdout.setEncoding('utf8').on('data', read);
    program.stderr.setEncoding('utf8').on('data', read);
    exited.then(() => fail(new Error(`The app exited:\n${output}`)), fail);
  });
  return {
    url,
    /** Returns the whole output. */
    output: () => output,
    /** Stops the app like Ctrl-C. Returns the exit code. */
    async stop() {
      if (program.exitCode === null && program.signalCode === null) program.kill('SIGINT');
      const [code] = await exited;
      return code;
    },
  };
};
