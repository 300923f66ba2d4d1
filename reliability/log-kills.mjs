// Kills writers and consumers of a log, which are real processes, and the server that has it: so many of each.
//
//   npm run reliability -- log-kills [--store folder] [--kills 100] [--seed 1]
//
// The store: a folder, `nats`, `nats-cluster` (three servers; the one that leads the stream is killed) or `redis`.
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atLeast, exactly, report } from './lib/report.mjs';
import { readOptions } from './lib/options.mjs';

const names = {
  folder: 'log-kills',
  nats: 'log-kills-nats',
  'nats-cluster': 'log-kills-nats-cluster',
  redis: 'log-kills-redis',
};
const usual = 100;

const runKills = async (store, kills, seed) => {
  mkdirSync('temp', { recursive: true });
  // Inside the project, so that the native package can be loaded.
  const bundles = mkdtempSync(`temp/${names[store]}-`);
  const folder = mkdtempSync(join(tmpdir(), `${names[store]}-`));
  const programs = ['kill-rounds', 'writer', 'consumer'];
  const [main, ...others] = programs.map((program) => join(bundles, `${program}.mjs`));
  try {
    await build({
      entryPoints: programs.map((program) => `test/log/programs/${program}.mjs`),
      outdir: bundles,
      outExtension: { '.js': '.mjs' },
      ...{ bundle: true, format: 'esm', platform: 'node', target: 'node20', logLevel: 'error' },
      tsconfig: 'tsconfig.json',
      external: ['fs-native-extensions'],
      banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` },
    });
    const args = [main, store, folder, ...others, `${kills}`, `${seed}`];
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
  } finally {
    for (const path of [bundles, folder]) rmSync(path, { recursive: true, force: true });
  }
};

const { store, kills, seed } = readOptions({ store: 'folder', kills: usual, seed: 1 }, { least: { kills: 1 } });
const name = names[store];
if (name === undefined) {
  console.error(`--store must be one of ${Object.keys(names).join(', ')}.`);
  process.exit(2);
}
const startedAt = performance.now();
const { violations, ...sums } = await runKills(store, kills, seed);
for (const violation of violations) console.log(violation);
report({
  name,
  command: `npm run reliability -- log-kills --store ${store} --kills ${kills} --seed ${seed}`,
  goals: [
    exactly('records that are lost, repeated, changed or skipped', violations.length, 0),
    atLeast('kills of a writer', sums.writerKills, kills),
    atLeast('kills of a consumer', sums.consumerKills, kills),
    ...(store === 'folder' ? [] : [atLeast('kills of the server', sums.serverKills, kills)]),
  ],
  facts: {
    [store === 'folder' ? 'stopped writers' : 'stopped writers that were replaced']: sums.stops,
    'frames that a writer confirmed just before the kills': sums.confirmed,
    'records worked on again, because the kill came before the commit': sums.repeated,
    frames: sums.frames,
    gaps: sums.gaps,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: kills >= usual,
});
