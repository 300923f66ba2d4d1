// Kills and stops writers and consumers of a log, which are real processes. With NATS it kills a server as well.
//
//   npm run reliability -- log-kills [--rounds 100] [--seed 1]                     a log in a folder
//   npm run reliability -- jet-stream-kills [--rounds 50] [--seed 1]               a log on a NATS server
//   npm run reliability -- jet-stream-cluster-kills [--rounds 20] [--seed 1]       on three; the one that leads its stream is killed
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atLeast, exactly, report } from './lib/report.mjs';
import { readOptions } from './lib/options.mjs';

const engines = {
  'log-kills': { engine: 'folder', usual: 100 },
  'jet-stream-kills': { engine: 'nats', usual: 50 },
  'jet-stream-cluster-kills': { engine: 'nats-cluster', usual: 20 },
};

const runKills = async (name, engine, rounds, seed) => {
  mkdirSync('temp', { recursive: true });
  // Inside the project, so that the native package can be loaded.
  const bundles = mkdtempSync(`temp/${name}-`);
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
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
    const args = [main, engine, folder, ...others, `${rounds}`, `${seed}`];
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
  } finally {
    for (const path of [bundles, folder]) rmSync(path, { recursive: true, force: true });
  }
};

const [name, ...args] = process.argv.slice(2);
const { engine, usual } = engines[name];
const { rounds, seed } = readOptions({ rounds: usual, seed: 1 }, { least: { rounds: 1 }, args });
const startedAt = performance.now();
const { violations, frames, gaps, ...sums } = await runKills(name, engine, rounds, seed);
for (const violation of violations) console.log(violation);
report({
  name,
  command: `npm run reliability -- ${name} --rounds ${rounds} --seed ${seed}`,
  goals: [
    exactly('records that are lost, repeated, changed or skipped', violations.length, 0),
    atLeast('kills of a writer', sums.writerKills, rounds),
    ...(engine === 'folder' ? [] : [atLeast('kills of the server', sums.serverKills, rounds - 2)]),
  ],
  facts: {
    [engine === 'folder' ? 'stopped writers' : 'stopped writers that were replaced']: sums.stops,
    'killed consumers': sums.consumerKills,
    frames,
    gaps,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: rounds >= usual,
});
