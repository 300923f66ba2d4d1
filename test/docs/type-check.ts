import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './fences.js';

const checker = join(import.meta.dirname, 'programs/check-types.mjs');

/**
 * Type-checks programs with the options of tsconfig.json, each as a separate module, all in one compilation.
 *
 * The compilation is a process, because TypeScript is much slower under jest.
 *
 * @param programs - source texts by name. A name ends in `.ts` or `.mjs`, and errors refer to it
 * @param files - files of the project to check as well
 * @returns one line for each error
 */
export const typeErrors = async (
  programs: Readonly<Record<string, string>>,
  files: readonly string[],
): Promise<readonly string[]> => {
  const running = promisify(execFile)(process.execPath, [checker], { cwd: root, maxBuffer: 1e8 });
  running.child.stdin?.end(JSON.stringify({ programs, files }));
  const { stdout } = await running;
  return JSON.parse(stdout) as readonly string[];
};
