import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './fences.js';

const compiler = join(root, 'node_modules/typescript-7/bin/tsc');

// Options for NestJS and Angular applications. A snippet may declare a variable without using it.
const compilerOptions = {
  allowJs: true,
  checkJs: true,
  noEmit: true,
  noUnusedLocals: false,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  erasableSyntaxOnly: false,
  lib: ['ES2023', 'DOM'],
};

/**
 * Type-checks programs with the options of tsconfig.json, as separate modules in one compilation. Leaves out errors in
 * the files they import, because those have other options.
 *
 * @param programs - source texts by name. Names end in `.ts` or `.mjs`, and errors refer to them
 * @param files - files of the project to check as well
 * @returns one line for each error
 */
export const typeErrors = (programs: Readonly<Record<string, string>>, files: readonly string[]): readonly string[] => {
  const temp = join(root, 'temp');
  mkdirSync(temp, { recursive: true });
  // Inside the project, so that imports find its packages.
  const folder = mkdtempSync(join(temp, 'snippets-'));
  try {
    for (const [name, text] of Object.entries(programs)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const config = {
      extends: '../../tsconfig.json',
      compilerOptions,
      include: [],
      files: [...Object.keys(programs), ...files.map((file) => join(root, file))],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const args = [compiler, '-p', folder, '--pretty', 'false', '--singleThreaded'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', maxBuffer: 1e8 });
    return stdout
      .split(/\n(?! )/)
      .filter((line) => !line.startsWith('../../src/'))
      .flatMap(described);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const described = (line: string): string[] => {
  if (line === '') return [];
  const [, file, number, message] = /^(.*)\((\d+),\d+\): error TS\d+: ([^]*)$/.exec(line) ?? [];
  return [message === undefined ? line : `${String(file)}, line ${String(number)}: ${message.trimEnd()}`];
};
