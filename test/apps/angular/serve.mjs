import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Ends a program, and waits until it has ended. */
export const end = async (program) => {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const ended = once(program, 'exit');
  program.kill();
  await ended;
};

/** Starts a program in the folder of the app that sends its parent `{ port }`; resolves with both. */
export const started = async (app, ...args) => {
  const program = app.spawn(...args);
  program.stdout.resume();
  const [first] = await Promise.race([once(program, 'message'), once(program, 'exit')]);
  if (first?.port === undefined) throw new Error(`${args[0]} ended with code ${first}:\n${program.complaints}`);
  return { program, url: `http://127.0.0.1:${first.port}` };
};

/**
 * Serves a built page together with a relay.
 *
 * @returns the address; `tell`, which gives the server an order and resolves with its answer; and `stop`
 */
export const serve = async (app, page) => {
  await copyFile(join(import.meta.dirname, 'server.mjs'), join(app.folder, 'server.mjs'));
  const { program, url } = await started(app, 'server.mjs', page);
  return {
    url,
    tell: async (order) => {
      program.send({ order });
      const [{ answer }] = await once(program, 'message');
      return answer;
    },
    stop: () => end(program),
  };
};
