// Results as JSON, for the benchmarks and for the long checks of reliability/: one shape, written here only.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { machine } from './machine.mjs';
import { folderOf, root } from './root.mjs';

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** Returns the commit that is measured. A note says so if files were changed since, or if there is no repository. */
const commit = () => {
  try {
    const measured = ['src', 'bench', 'reliability', 'package-lock.json', ':!bench/results', ':!reliability/results'];
    const isChanged = git('status', '--porcelain', '--', ...measured) !== '';
    return { hash: git('rev-parse', 'HEAD'), ...(isChanged && { note: 'with changes that were not committed' }) };
  } catch {
    return { note: 'not measured in a repository' };
  }
};

/**
 * Writes `<folder><name>.json`: the figures, with the time, the commit and the machine.
 *
 * @param folder - a path below the root that ends in `/`
 * @param result - `name`, of the file as well; the `command` that repeats it; `rounds`, if there are any; `goals`: rows
 * `{ what, wanted, measured, met }`, and the `id`, `min`, `max`, `rounds` and `note` of those of benchmarks; `tables`:
 * `{ title, columns, rows }`; `facts`: texts and numbers by name
 * @returns what was written, and its `path` from the root
 */
export const writeResult = (folder, { name, command, rounds, goals = [], tables = [], facts = {} }) => {
  const result = {
    ...{ name, command, measuredAt: new Date().toISOString(), commit: commit(), machine: machine() },
    ...(rounds !== undefined && { rounds }),
    ...{ goals, tables, facts },
  };
  const path = `${folder}${name}.json`;
  writeFileSync(new URL(`${name}.json`, folderOf(folder)), `${JSON.stringify(result, undefined, 2)}\n`);
  return { ...result, path };
};

/** Reads a result, such as `bench/results/app.json`. */
export const readResult = (path) => JSON.parse(readFileSync(new URL(path, root), 'utf8'));
