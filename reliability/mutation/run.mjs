// Mutation testing: changes the sources one place at a time, and counts how many of the changes a test notices.
//
//   npm run mutation                        every folder, then reliability/mutation/survivors.md and the figures
//   npm run mutation -- reconnect protocol  these folders alone
//   npm run mutation -- --keep              only what changed since the last run; a text or a table at the top of a file is not
//                                           looked at again when its tests have changed
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installNode, nodeVersions } from '../../scripts/node-matrix.mjs';
import { folders } from './folders.mjs';
import { report } from './report.mjs';

const { positionals: asked, values } = parseArgs({ allowPositionals: true, options: { keep: { type: 'boolean' } } });
const unknown = asked.filter((name) => !folders.includes(name));
if (unknown.length > 0) {
  console.error(`No folder ${unknown.join(', ')}: ${folders.join(', ')}.`);
  process.exit(2);
}

// Stryker 10 needs Node 22, the library does not.
const isNew = Number(process.versions.node.split('.')[0]) >= 22;
const node = isNew ? process.execPath : join(installNode(nodeVersions[0]), 'node');

const mutate = (folder) => {
  console.log(`\n# src/${folder} against test/${folder}`);
  const { status } = spawnSync(
    node,
    ['node_modules/@stryker-mutator/core/bin/stryker.js', 'run', 'reliability/mutation/stryker.config.mjs'],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        // In this time zone a text without one is not read as GMT by accident.
        TZ: 'Asia/Kolkata',
        MUTATION_FOLDER: folder,
        MUTATION_KEEP: values.keep ? 'yes' : 'no',
      },
    },
  );
  return status === 0;
};

const ran = (asked.length > 0 ? asked : folders).map(mutate);
if (!ran.every(Boolean)) process.exitCode = 1;
await report();
