import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const root = join(import.meta.dirname, '../..');
const versionOf = (name) => JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version;

/** Bundles a package into one CommonJS file, and returns its path. */
const bundled = (name) => {
  const folder = join(root, 'temp/packages');
  const file = join(folder, `${name}-${versionOf(name)}.cjs`);
  if (existsSync(file)) return file;
  const { outputFiles } = buildSync({
    stdin: { contents: `module.exports = require('${name}');`, resolveDir: root },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    write: false,
    logLevel: 'error',
  });
  mkdirSync(folder, { recursive: true });
  // Rename is atomic: another run of the tests may write the same file.
  writeFileSync(`${file}.${process.pid}`, outputFiles[0].contents);
  renameSync(`${file}.${process.pid}`, file);
  return file;
};

/**
 * The packages that jest loads as one file. It loads every file of a package again for each test file, and these have 100 to 300 files.
 * RxJS brings such a bundle. `rxjs/operators` and the like must be the same file, because they share classes.
 */
export const bundledPackages = {
  '^rxjs$': join(root, 'node_modules/rxjs/dist/bundles/rxjs.umd.js'),
  '^rxjs/(operators|testing|fetch)$': join(root, 'test/support/rxjs-parts/$1.cjs'),
  '^io-ts$': bundled('io-ts'),
  '^undici$': bundled('undici'),
};
