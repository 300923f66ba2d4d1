// Mutation testing: changes the sources in one place at a time and counts the changes that a test detects. `// Stryker disable next-line` in a
// source names a mutator whose changes have no visible effect there, with the reason.
//
//   npm run reliability -- mutation                            all folders, each tested by the folder of its name in test; writes the figures
//   npm run reliability -- mutation feed protocol              these folders
//   npm run reliability -- mutation settle/settlement.ts       these files, or lines of them (…/settlement.ts:40-60): the score and the survivors
//   npm run reliability -- mutation settle/settlement.ts --tests test/settle/model.test.ts
//
// Options: --tests    the test files or folders to run, separated by commas
//          --all      runs each of these tests for each change. Otherwise only those that reach the changed line in the process of jest: not in
//                     threads, other processes or bundles, where simulations run
//          --keep     only changes that are new since the last run. It misses changes of tests for constants at the top of a file
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { installNode, nodeVersions } from '../../scripts/install.mjs';
import { reportMutants } from './report.mjs';

/** The folders of src that are mutated without a name, the quickest first. */
const folders = ['feed', 'protocol', 'operators', 'transport'];

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { tests: { type: 'string' }, all: { type: 'boolean' }, keep: { type: 'boolean' } },
});
const names = (positionals.length > 0 ? positionals : folders).map((name) => name.replace(/^src\/|\/$/g, ''));
const tests = values.tests?.split(',');
const missing = [...names.map((name) => `src/${name.split(':')[0]}`), ...(tests ?? [])].filter(
  (path) => !existsSync(path),
);
if (missing.length > 0) {
  console.error(`There is no ${missing.join(', ')}.`);
  process.exit(2);
}

// Stryker needs Node 22, the library doesn't. So Stryker isn't among the packages of the root.
const isNew = Number(process.versions.node.split('.')[0]) >= 22;
const bin = isNew ? [] : [installNode(nodeVersions[0])];
const env = { ...process.env, PATH: [...bin, process.env.PATH].join(delimiter) };
const here = import.meta.dirname;
if (!existsSync(join(here, 'node_modules')))
  spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: here, env, stdio: 'inherit' });

// Some tests start programs, which load dist.
if (!existsSync('dist') || positionals.length === 0)
  spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });

const isFile = (name) => name.includes('.ts');
const folderOf = (name) => name.split('/')[0];

/** Runs Stryker. Returns the report that it wrote: the mutants of each file. */
const mutate = (what) => {
  const paths = tests ?? [...new Set(what.map((name) => `test/${folderOf(name)}`))];
  const run = {
    mutate: what.map((name) => (isFile(name) ? `src/${name}` : `src/${name}/**/*.ts`)),
    tests: paths.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.test.ts`)),
    file: `temp/mutation/${folderOf(what[0])}`,
    // A file takes minutes, half of them for changes that never end.
    timeoutMS: isFile(what[0]) ? 5_000 : 15_000,
    isAll: values.all ?? false,
    isKept: values.keep ?? false,
  };
  console.log(`\n# ${run.mutate.join(', ')}, tested by ${run.tests.join(', ')}`);
  const stryker = join(here, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  // In this time zone a test fails if a time without a zone is read as local time instead of GMT.
  const ofRun = { TZ: 'Asia/Kolkata', MUTATION: JSON.stringify(run) };
  const { status } = spawnSync('node', [stryker, 'run', 'reliability/mutation/stryker.config.mjs'], {
    stdio: 'inherit',
    env: { ...env, ...ofRun },
  });
  if (status !== 0) process.exit(1);
  return JSON.parse(readFileSync(`${run.file}.json`, 'utf8')).files;
};

// Folders one after the other, the files of all together.
const [files, whole] = [true, false].map((is) => names.filter((name) => isFile(name) === is));
const found = whole.map((name) => [`src/${name}`, Object.entries(mutate([name]))]);
if (files.length > 0) found.push(...Object.entries(mutate(files)).map((file) => [file[0], [file]]));
const command = ['npm run reliability -- mutation', ...process.argv.slice(2)].join(' ');
reportMutants(found, { command, isResult: positionals.length === 0 && tests === undefined });
