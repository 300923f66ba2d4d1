// Runs a program of TypeScript: bundles its own files, leaves packages (and `rx-trade-feed`, as built) outside.
//
//   node scripts/run-ts.mjs reliability/chaos/chaos.ts --seed 1
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const [entry, ...args] = process.argv.slice(2);
if (entry === undefined) {
  console.error('Which program? node scripts/run-ts.mjs FILE.ts [its arguments]');
  process.exit(2);
}
// In the project, so that the program finds the packages and this one by its name.
mkdirSync('temp', { recursive: true });
const folder = mkdtempSync(join(resolve('temp'), 'run-ts-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const outfile = join(folder, 'program.mjs');
// Modules of JavaScript stay where they are: they find files by their own place.
const modulesApart = {
  name: 'modules-apart',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\..*\.mjs$/ }, ({ path, resolveDir }) => ({
      path: pathToFileURL(resolve(resolveDir, path)).href,
      external: true,
    })),
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
  plugins: [modulesApart],
  // The paths of tsconfig.json lead to src; here the package as built is wanted.
  tsconfigRaw: {},
});
const { status } = spawnSync(process.execPath, ['--enable-source-maps', '--expose-gc', outfile, ...args], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
