// Runs a program that imports TypeScript: bundles its own files, and imports packages and the built `rx-trade-feed` at run time.
//
//   node scripts/run-ts.mjs reliability/chaos/index.mjs --seed 1
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const [entry] = process.argv.splice(2, 1);
// Below the project folder, so that Node finds the packages and resolves `rx-trade-feed` to this one.
const outfile = resolve(`temp/run-ts/${process.pid}.mjs`);
process.once('exit', () => rmSync(outfile, { force: true }));
// JavaScript modules aren't bundled: they locate files relative to themselves.
const externalModules = {
  name: 'external-modules',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\.\.?\/.*\.mjs$/ }, ({ path, resolveDir, kind }) =>
      kind === 'entry-point' ? undefined : { path: pathToFileURL(resolve(resolveDir, path)).href, external: true },
    ),
};
const settings = { bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external' };
// The paths in tsconfig.json point to src. This program needs the built package.
const logs = { sourcemap: 'inline', logLevel: 'warning', tsconfigRaw: {} };
await build({ entryPoints: [resolve(entry)], outfile, plugins: [externalModules], ...settings, ...logs });
process.setSourceMapsEnabled(true);
process.argv[1] = outfile;
await import(pathToFileURL(outfile).href);
