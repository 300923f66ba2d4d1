import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { commandNames, isCommand } from '../../src/cli/program.js';
import { helpText } from '../cli/support/help-text.js';
import { read, root } from './fences.js';

const helpTexts = new Map<string | undefined, string>();
for (const name of [undefined, ...commandNames]) helpTexts.set(name, await helpText(name));
const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };

/** Programs on the reader's machine, whose arguments aren't checked. */
const known = new Set(
  'bun cat cd curl deno docker echo esbuild grep head jq kubectl mkdir nest ng sort tail uniq'.split(' '),
);

/**
 * Returns the problems of a shell fence: scripts, files, subcommands or flags that don't exist.
 *
 * @param code - the fence
 * @param saved - the programs that the page tells the reader to save
 * @returns one line for each problem
 */
export const shellProblems = (code: string, saved: readonly string[] = []): readonly string[] =>
  commandsOf(code).flatMap((command) => {
    const problem = problemOf(command.split(/\s+/).filter((word) => !saved.includes(word)));
    return problem === undefined ? [] : [`${command}: ${problem}`];
  });

const commandsOf = (code: string): readonly string[] =>
  code
    .replaceAll(/\\\n/g, ' ')
    // A quoted text can contain command separators, and a comment can contain a quote.
    .replaceAll(/'[^']*'|(?<=^|\s)#.*$/gm, (part) => (part.startsWith("'") ? "''" : ''))
    .split('\n')
    .flatMap((line) => line.split(/&&|\||;|\s&(?=\s|$)/))
    .map((command) => command.trim().replace(/^(export\s+)?([A-Z_]+=\S*\s*)+/, ''))
    .filter((command) => command !== '');

const problemOf = (words: readonly string[]): string | undefined => {
  const [program = '', first = '', second = ''] = words;
  if (known.has(program)) return undefined;
  switch (program) {
    case 'npm':
      return npmProblem(first, second);
    case 'node': {
      const [file = ''] = words.slice(1).filter((word) => !word.startsWith('-'));
      return existsSync(join(root, file)) ? undefined : 'the file does not exist';
    }
    case 'npx':
      return problemOf(words.slice(1));
    case 'tsc':
      return first === '-p' && existsSync(join(root, second, 'tsconfig.json'))
        ? undefined
        : 'the project does not exist';
    case 'rx-trade-feed':
      return cliProblem(words.slice(1));
    default:
      return 'test/docs/shell.ts does not know this program';
  }
};

const npmProblem = (command: string, argument: string): string | undefined => {
  if (['ci', 'pack', 'pkg', 'install', 'i', 'init'].includes(command)) return undefined;
  const script = command === 'run' ? argument : command;
  return script in scripts ? undefined : `the script "${script}" does not exist`;
};

const cliProblem = (words: readonly string[]): string | undefined => {
  const [command] = words.filter((word) => !word.startsWith('-'));
  if (command !== undefined && !isCommand(command)) return `the command "${command}" does not exist`;
  const help = helpTexts.get(command) ?? '';
  const flags = words.filter((word) => word.startsWith('--')).map((word) => word.replace(/=.*/, ''));
  const unknown = flags.find((flag) => !new RegExp(`${flag}\\b`).test(help));
  return unknown === undefined ? undefined : `the help does not list ${unknown}`;
};
