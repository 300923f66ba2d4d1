// Builds dist. TypeScript 7 checks and compiles `src` into temp/rx-trade-feed. Then rolldown joins the modules, and rollup the declarations, into one
// file for each entry point and the chunks that entry points share. So an import reads few files, and a class exists once.
// rolldown takes a sixth of the time of rollup, but its plugin for declarations moves their comments to other places.
// Other programs may be reading dist, so the folder stays, and old files are removed last.
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { transform } from 'esbuild';
import { rolldown } from 'rolldown';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';

// A chunk of an `index.js` has the name of its folder.
const compiled = 'temp/rx-trade-feed';
const dist = 'dist';

const compile = () => {
  rmSync(compiled, { recursive: true, force: true });
  const tsc = ['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.build.json', '--singleThreaded'];
  const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entryPoints = Object.values(exports).flatMap(({ types, default: file }) => (types ? [file, types] : []));
const declarations = entryPoints.filter((file) => file.endsWith('.d.ts'));
const programs = [
  ...entryPoints.filter((file) => file.endsWith('.js')),
  // bin/rx-trade-feed.js imports it.
  './dist/cli/main.js',
  // It starts the worker by its address, so neither may move.
  './dist/worker/start-worker.js',
];
const worker = './dist/worker/inside/feed-worker.js';

/** Maps the name of a file in dist to the compiled file. */
const inputOf = (files, end) =>
  Object.fromEntries(
    files.map((file) => {
      const path = relative(dist, file);
      return [path.slice(0, -end.length), join(compiled, path)];
    }),
  );

/** Writes the files that belong to some entry points. Returns them. A warning is an error. */
const bundle = async (bundler, files, end, settings, outputSettings) => {
  const built = await bundler({
    input: inputOf(files, end),
    external: (id) => /^[^./]/.test(id) || id.endsWith('.cjs'),
    onwarn: ({ message }) => {
      throw new Error(message);
    },
    ...settings,
  });
  const { output } = await built.write({
    dir: dist,
    entryFileNames: `[name]${end}`,
    chunkFileNames: ({ name }) => `chunks/${name.replace(/\.d$/, '')}${end}`,
    minifyInternalExports: false,
    ...outputSettings,
  });
  await built.close();
  return output;
};

const code = {
  platform: 'neutral',
  preserveEntrySignatures: 'allow-extension',
  experimental: { attachDebugInfo: 'none' },
};
// The declarations have the comments, and editors read those.
const noComments = { comments: false };

// Small modules that several entry points or commands share. Without this, each would be a file. A page loads only `page`.
const groups = [
  {
    name: 'page',
    test: /rx-trade-feed\/protocol\/(frame\.|event\.|event-line|type-guards|validate|failures\/(?!classify))/,
  },
  {
    name: 'protocol',
    test: /rx-trade-feed\/protocol\/(contract|event-record|printable|secret)\./,
  },
  { name: 'items', test: /rx-trade-feed\/operators\/(items|frames|connection-status|share-feed|bounded\/ring)/ },
  // `--version` loads `command` only. `following` loads a feed.
  { name: 'command', test: /rx-trade-feed\/cli\/(context|errors|options)/ },
  { name: 'following', test: /rx-trade-feed\/cli\/(view|connection|follow|output)/ },
];

const namesOf = (files) => files.map(({ fileName }) => fileName);

/** Gives a written file of a program short names. In a stack trace of an application, the names of functions must be readable. */
const minify = async ({ fileName, code: text }) => {
  const { code: minified } = await transform(text, { minify: true, format: 'esm', target: 'node20' });
  writeFileSync(join(dist, fileName), minified);
};

/**
 * Writes a file of the library in short lines with few spaces, so that a position in a stack trace leads to a statement. The addresses of dynamic
 * imports become strings: rolldown writes them as templates, which not every bundler understands.
 */
const inShortLines = async ({ fileName, code: text }) => {
  const { code } = await transform(text, { minifyWhitespace: true, lineLimit: 160, format: 'esm', target: 'node20' });
  writeFileSync(join(dist, fileName), code.replace(/\bimport\(`([^`$]+)`\)/g, 'import("$1")'));
};

const bundleCode = async () => {
  const codeSplitting = { groups, includeDependenciesRecursively: false };
  // The names of functions and classes stay, because they are in stack traces.
  const keepNames = { function: true, class: true };
  const smaller = {
    compress: { target: 'es2022', keepNames },
    mangle: { toplevel: false, keepNames },
    codegen: { removeWhitespace: false },
  };
  const files = await bundle(rolldown, programs, '.js', code, { ...noComments, codeSplitting, minify: smaller });
  for (const file of files) await (isOfCommand(file) ? minify(file) : inShortLines(file));
  return namesOf(files);
};

const isOfCommand = ({ moduleIds }) => moduleIds.every((id) => id.includes(`${compiled}/cli/`));

/**
 * Bundles the worker with the part of RxJS that it uses: each worker loads its modules again, and RxJS has 200 files. All its values reach the
 * main thread as messages, so the copies of classes in this file are never seen there.
 */
const bundleWorker = async () => {
  const resolve = { conditionNames: ['es2015', 'default'] };
  const external = (id) => /^(node:|ws$|undici$)/.test(id);
  const license = 'worker/inside/rxjs-license.txt';
  const banner = '/*! Contains RxJS, which has the Apache License 2.0: see rxjs-license.txt */';
  const files = await bundle(rolldown, [worker], '.js', { ...code, resolve, external }, { ...noComments, banner });
  for (const file of files) await minify(file);
  cpSync('node_modules/rxjs/LICENSE.txt', join(dist, license));
  return [...namesOf(files), license];
};

/** The chunk of declarations that entry points share. Without this, each would be a file. */
const chunkOf = (id) => /rx-trade-feed\/(protocol|operators)\/(?!index|node\/)/.exec(id)?.[1];

/** Names the library of TypeScript that has `Disposable`: the compiler and rollup leave it out, and a page has no types of Node. */
const withDisposable = {
  name: 'with-disposable',
  renderChunk: (code) => (/\bDisposable\b/.test(code) ? `/// <reference lib="esnext.disposable" />\n${code}` : null),
};

/** Leaves out the step that imports types from another entry point instead of the shared chunk: that of the server needs the types of Node. */
const directly = (plugin) => ({ ...plugin, generateBundle: undefined });

const bundleDeclarations = async () => {
  const plugins = [directly(dts()), withDisposable];
  return namesOf(await bundle(rollup, declarations, '.d.ts', { plugins }, { manualChunks: chunkOf }));
};

/** A bundler would turn CommonJS into another module. */
const copyCommonJs = () => {
  const files = readdirSync(compiled, { recursive: true }).filter((file) => file.endsWith('.cjs'));
  for (const file of files) cpSync(join(compiled, file), join(dist, file));
  return files;
};

compile();
const written = new Set([
  ...(await bundleCode()),
  ...(await bundleWorker()),
  ...(await bundleDeclarations()),
  ...copyCommonJs(),
]);
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath ?? entry.path, entry.name);
  if (entry.isFile() && !written.has(relative(dist, file))) rmSync(file);
}
