// Kills a NATS server, and kills and stops writers and consumers of a log on it, which are real processes.
//
//   npm run reliability -- jet-stream-kills [--rounds 50] [--seed 1]
import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { atLeast, exactly } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
});
const { rounds, seed } = values;
const startedAt = performance.now();

mkdirSync('temp', { recursive: true });
// Inside the project, so that the native package can be loaded.
const bundles = mkdtempSync('temp/jet-stream-kills-');
const folder = mkdtempSync(join(tmpdir(), 'jet-stream-kills-'));
const programs = ['log-kill-rounds', 'log-writer', 'log-consumer'];
await build({
  entryPoints: programs.map((name) => `test/nats/programs/${name}.mjs`),
  outdir: bundles,
  outExtension: { '.js': '.mjs' },
  ...{ bundle: true, format: 'esm', platform: 'node', target: 'node20', logLevel: 'error' },
  tsconfig: 'tsconfig.json',
  external: ['fs-native-extensions'],
  banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` },
});
const [main, writer, consumer] = programs.map((name) => join(bundles, `${name}.mjs`));
try {
  const { stdout } = await promisify(execFile)(process.execPath, [main, folder, writer, consumer, rounds, seed]);
  const { violations, frames, gaps, ...sums } = JSON.parse(stdout);
  for (const violation of violations) console.log(violation);
  await report({
    name: 'jet-stream-kills',
    command: `npm run reliability -- jet-stream-kills --rounds ${rounds} --seed ${seed}`,
    goals: [
      exactly('records that are lost, repeated, changed or skipped', violations.length, 0),
      atLeast('kills of a writer', sums.writerKills, Number(rounds)),
      atLeast('kills of the server', sums.serverKills, Number(rounds) - 2),
    ],
    tables: [],
    facts: {
      'stopped writers that were replaced': sums.takeovers,
      'killed consumers': sums.consumerKills,
      frames,
      gaps,
      seconds: Math.round((performance.now() - startedAt) / 1_000),
    },
    keep: Number(rounds) >= 50,
  });
} finally {
  for (const path of [bundles, folder]) rmSync(path, { recursive: true, force: true });
}
