// Runs a program that imports TypeScript: bundles its own files, and imports packages and the built `rx-trade-feed` at run time.
//
//   node scripts/run-ts.mjs reliability/chaos/index.mjs --seed 1
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const [entry, ...args] = process.argv.slice(2);
if (entry === undefined) {
  console.error('Usage: node scripts/run-ts.mjs FILE [arguments of the program]');
  process.exit(2);
}
// Below the project folder, so that Node finds the packages and resolves `rx-trade-feed` to this one.
mkdirSync('temp', { recursive: true });
const folder = mkdtempSync(join(resolve('temp'), 'run-ts-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const outfile = join(folder, 'program.mjs');
// JavaScript modules aren't bundled: they locate files relative to themselves.
const externalModules = {
  name: 'external-modules',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\.\.?\/.*\.mjs$/ }, ({ path, resolveDir, kind }) =>
      kind === 'entry-point' ? undefined : { path: pathToFileURL(resolve(resolveDir, path)).href, external: true },
    ),
};
await build({
  entryPoints: [entry],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  sourcemap: 'inline',
  logLevel: 'warning',
  plugins: [externalModules],
  // The paths in tsconfig.json point to src. This program needs the built package.
  tsconfigRaw: {},
});
const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--expose-gc', outfile, ...args], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
