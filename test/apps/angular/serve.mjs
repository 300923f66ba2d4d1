import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Stops a program, and waits for its exit. */
export const stopProgram = async (program) => {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const ended = once(program, 'exit');
  program.kill();
  await ended;
};

/** Starts a program in the folder of the app. Resolves when the program has sent `{ port }`. */
export const startProgram = async (app, ...args) => {
  const program = app.spawn(...args);
  program.stdout.resume();
  const [first] = await Promise.race([once(program, 'message'), once(program, 'exit')]);
  if (first?.port === undefined) throw new Error(`${args[0]} exited with code ${first}:\n${program.errors}`);
  return { program, url: `http://127.0.0.1:${first.port}` };
};

/**
 * Serves a built page together with a relay.
 *
 * @returns the address; `order`, which sends an order to the server and resolves with the answer; and `stop`
 */
export const serve = async (app, page) => {
  await copyFile(join(import.meta.dirname, 'server.mjs'), join(app.folder, 'server.mjs'));
  const { program, url } = await startProgram(app, 'server.mjs', page);
  return {
    url,
    order: async (order) => {
      program.send({ order });
      const [{ answer }] = await once(program, 'message');
      return answer;
    },
    stop: () => stopProgram(program),
  };
};
