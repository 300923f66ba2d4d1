// What `npm run bench` and `npm run reliability` share: a list of programs, one of which is run with its own options.
import { spawnSync } from 'node:child_process';

/** Returns the list of programs as text, one line each. */
export const listOf = (command, programs) => {
  const width = Math.max(...Object.keys(programs).map((name) => name.length));
  const lines = Object.entries(programs).map(([name, { what }]) => `  ${name.padEnd(width)}  ${what}`);
  return [`Usage: npm run ${command} -- NAME [options]`, '', ...lines].join('\n');
};

/**
 * Runs the program that the command line names and exits with its code. Prints the list if there is no name.
 *
 * @param command - the npm script
 * @param programs - by name: `what` it does, the arguments of `node`, and `needsBuild` if it reads `dist`
 */
export const runProgram = (command, programs) => {
  const [name, ...options] = process.argv.slice(2);
  if (!Object.hasOwn(programs, name ?? '')) {
    if (name !== undefined) console.error(`Unknown name: ${name}\n`);
    console.log(listOf(command, programs));
    process.exitCode = name === undefined ? 0 : 2;
    return;
  }
  const { node, needsBuild } = programs[name];
  const run = (...args) => spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
  process.exitCode = (needsBuild && run('scripts/build.mjs')) || run(...node, ...options);
};
