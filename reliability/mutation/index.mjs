// Mutation testing: changes the sources in one place at a time and counts the changes that a test detects.
//
//   npm run reliability -- mutation                         all folders; writes survivors.md and the figures
//   npm run reliability -- mutation feed protocol      these folders
//   npm run reliability -- mutation --keep                  only mutants that changed since the last run. It misses changes of tests
//                                                           for constants at the top of a file.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { installNode, nodeVersions } from '../../scripts/install.mjs';
import { folders, report } from './report.mjs';

const { positionals: names, values } = parseArgs({ allowPositionals: true, options: { keep: { type: 'boolean' } } });
const unknown = names.filter((name) => !folders.includes(name));
if (unknown.length > 0) {
  console.error(`Unknown folder: ${unknown.join(', ')}. The folders are ${folders.join(', ')}.`);
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
spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });

const mutate = (folder) => {
  console.log(`\n# src/${folder} tested by test/${folder}`);
  const stryker = join(here, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const { status } = spawnSync('node', [stryker, 'run', 'reliability/mutation/stryker.config.mjs'], {
    stdio: 'inherit',
    env: {
      ...env,
      // In this time zone a test fails if a time without a zone is read as local time instead of GMT.
      TZ: 'Asia/Kolkata',
      MUTATION_FOLDER: folder,
      MUTATION_KEEP: values.keep ? 'yes' : 'no',
    },
  });
  return status === 0;
};

const ran = (names.length > 0 ? names : folders).map(mutate);
if (!ran.every(Boolean)) process.exitCode = 1;
await report();
