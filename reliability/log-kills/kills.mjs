import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { atLeast, exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

/**
 * Kills and stops writers and consumers of a log, which are real processes, and reports what a reader has received.
 *
 * @param {'folder' | 'nats' | 'nats-cluster'} engine - where the log is; a server of NATS is killed as well
 * @param {{ readonly name: string, readonly rounds: number }} command - its name, and how many rounds it has by default
 */
export const reportKills = async (engine, { name, rounds: usual }) => {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: `${usual}` }, seed: { type: 'string', default: '1' } },
  });
  const { rounds, seed } = values;
  const startedAt = performance.now();
  const { violations, frames, gaps, ...sums } = await runKills(name, engine, rounds, seed);
  for (const violation of violations) console.log(violation);
  await report({
    name,
    command: `npm run reliability -- ${name} --rounds ${rounds} --seed ${seed}`,
    goals: [
      exactly('records that are lost, repeated, changed or skipped', violations.length, 0),
      atLeast('kills of a writer', sums.writerKills, Number(rounds)),
      ...(engine === 'folder' ? [] : [atLeast('kills of the server', sums.serverKills, Number(rounds) - 2)]),
    ],
    tables: [],
    facts: {
      [engine === 'folder' ? 'stopped writers' : 'stopped writers that were replaced']: sums.stops,
      'killed consumers': sums.consumerKills,
      frames,
      gaps,
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    },
    keep: Number(rounds) >= usual,
  });
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
    const args = [main, engine, folder, ...others, rounds, seed];
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout);
  } finally {
    for (const path of [bundles, folder]) rmSync(path, { recursive: true, force: true });
  }
};
