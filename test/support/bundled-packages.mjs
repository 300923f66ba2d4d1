import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const root = join(import.meta.dirname, '../..');
const versionOf = (name) => JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')).version;

const folder = join(root, 'temp/packages');

const write = (file, text) => {
  mkdirSync(folder, { recursive: true });
  // Renames, which is atomic, because another run of the tests may write the same file.
  writeFileSync(`${file}.${process.pid}`, text);
  renameSync(`${file}.${process.pid}`, file);
};

/** Bundles a package into one CommonJS file, and returns the path of that file. */
const bundled = (name, contents = `module.exports = require('${name}');`) => {
  const file = join(folder, `${name}-${versionOf(name)}.cjs`);
  if (existsSync(file)) return file;
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: root },
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    minifyWhitespace: true,
    minifySyntax: true,
    // When an assertion fails, Node searches its source line for the text. In one long line, that takes seconds.
    lineLimit: 200,
    write: false,
    logLevel: 'error',
  });
  write(file, outputFiles[0].contents);
  return file;
};

// jest searches the text of a CommonJS module for export names, for each test file. This one has none, so jest takes them
// from the object that it loads.
const entry = (name, file, part = '') => {
  const path = join(folder, `${name}.cjs`);
  write(path, `const bundle = require(${JSON.stringify(file)});\nmodule.exports = bundle${part};\n`);
  return path;
};

// `rxjs/operators` and the like share classes with `rxjs`, so they go into the same file.
const rxjsParts = ['operators', 'testing', 'fetch'];
const rxjs = bundled(
  'rxjs',
  `module.exports = { ...require('rxjs'), ${rxjsParts.map((part) => `${part}: require('rxjs/${part}')`).join()} };`,
);
for (const part of rxjsParts) entry(`rxjs-${part}`, rxjs, `.${part}`);

/**
 * The packages that jest loads as one file each. It loads a package's files again for each test file, and these packages
 * have 100 to 300 of them.
 */
export const bundledPackages = {
  '^rxjs$': entry('rxjs', rxjs),
  [`^rxjs/(${rxjsParts.join('|')})$`]: join(folder, 'rxjs-$1.cjs'),
  '^io-ts$': entry('io-ts', bundled('io-ts')),
  '^undici$': entry('undici', bundled('undici')),
};
