// Builds dist. TypeScript 7 compiles `src`, rolldown joins the modules, and rollup the declarations (rolldown's plugin moves their comments), into one
// file for each entry point and the chunks that they share. So an import reads few files, and a class exists once.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';
import { minifySync } from 'rolldown/utils';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';

// A chunk of an `index.js` has the name of its folder.
const [compiled, bundled] = ['temp/rx-trade-feed', 'temp/dist'];
for (const folder of [compiled, bundled]) rmSync(folder, { recursive: true, force: true });
const tsc = ['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.build.json', '--singleThreaded'];
const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

/** Bundles compiled files, and changes each file of the result with `change`. A warning is an error. */
const bundle = async (bundler, end, files, settings, output, change = () => undefined) => {
  const bundle = await bundler({
    input: Object.fromEntries(files.map((file) => [file, join(compiled, `${file}${end}`)])),
    external: (id) => /^[^./]/.test(id) || id.endsWith('.cjs'),
    onwarn: ({ message }) => {
      throw new Error(message);
    },
    ...settings,
  });
  const chunkFileNames = ({ name }) => `chunks/${name.replace(/\.d$/, '')}${end}`;
  const names = { entryFileNames: `[name]${end}`, chunkFileNames, minifyInternalExports: false };
  const written = await bundle.write({ dir: bundled, ...names, ...output });
  for (const file of written.output) await change(file);
};

/** The nodes after which a line may end. */
const isWhole = ({ type }) => /Statement|Declaration|Declarator|^MethodDefinition/.test(type);
const endsIn = (node) => {
  if (typeof node !== 'object' || node === null) return [];
  return [...Object.values(node).flatMap(endsIn), ...(isWhole(node) ? [node.end] : [])];
};

/** Breaks lines, because Node prints the whole line of an error that nobody handles. */
const withLines = (code) => {
  let from = 0;
  const lines = [];
  for (const end of [...endsIn(parseAst(code)).sort((a, b) => a - b), code.length]) {
    if (end - from < 300 && end < code.length) continue;
    lines.push(code.slice(from, end));
    from = end;
  }
  return lines.join('\n');
};

// rolldown writes the addresses of dynamic imports as templates, which not every bundler understands.
const withAddresses = (code) => code.replace(/\bimport\(`([^`$]+)`\)/g, 'import("$1")');
const write = ({ fileName }, code) => writeFileSync(join(bundled, fileName), withAddresses(code));
const minify = (file, banner = '') => {
  const { code } = minifySync(file.fileName, file.code, { compress: { target }, mangle: true });
  write(file, banner + code);
};
// Stack traces of an application need positions and names. Commands have none.
const isCommand = ({ moduleIds }) => moduleIds.every((id) => id.includes(`${compiled}/cli/`));
const shorten = (file) => (isCommand(file) ? minify(file) : write(file, withLines(file.code)));

const experimental = { attachDebugInfo: 'none' };
// No module does something by reading a property or a global.
const treeshake = { propertyReadSideEffects: false, unknownGlobalSideEffects: false };
const code = { platform: 'neutral', preserveEntrySignatures: 'allow-extension', experimental, treeshake };
const keepNames = { function: true, class: true };
const target = 'es2022';
const compress = { target, keepNames };
const smaller = { compress, mangle: { toplevel: true, keepNames }, codegen: { removeWhitespace: true } };
// Small modules that several entry points or commands share. Without this, each would be a file. A page loads only `page`, `--version` only `command`.
const groups = Object.entries({
  page: /rx-trade-feed\/protocol\/(frame\.|event\.|event-line|type-guards|validate|failures\/(?!classify))/,
  protocol: /rx-trade-feed\/protocol\/(contract|event-record|printable|secret)\./,
  items: /rx-trade-feed\/operators\/(items|frames|connection-status|share-feed|bounded\/ring)/,
  command: /rx-trade-feed\/cli\/(context|errors|options)/,
  following: /rx-trade-feed\/cli\/(view|connection|follow|output)/,
}).map(([name, test]) => ({ name, test }));
const codeSplitting = { groups, includeDependenciesRecursively: false };

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));
const entries = Object.values(exports).flatMap(({ types }) => /^\.\/dist\/(.*)\.d\.ts$/.exec(types)?.[1] ?? []);
// bin/rx-trade-feed.js imports `main`. `start-worker` starts the worker by its address, so neither may move.
const programs = [...entries, 'cli/main', 'worker/start-worker'];
// Editors read the comments of the declarations.
await bundle(rolldown, '.js', programs, code, { comments: false, codeSplitting, minify: smaller }, shorten);

// The worker contains the part of RxJS that it uses: each worker loads its modules again, and RxJS has 200 files. All its values reach the main thread
// as messages, so the copies of classes in this file are never seen there.
const resolve = { conditionNames: ['es2015', 'default'] };
const ofWorker = { ...code, resolve, external: (id) => /^(node:|ws$|undici$)/.test(id) };
const banner = '/*! Contains RxJS, which has the Apache License 2.0: see rxjs-license.txt */\n';
await bundle(rolldown, '.js', ['worker/inside/feed-worker'], ofWorker, { comments: false }, (file) =>
  minify(file, banner),
);
cpSync('node_modules/rxjs/LICENSE.txt', join(bundled, 'worker/inside/rxjs-license.txt'));

// The compiler and rollup leave out the library of TypeScript that has `Disposable`, and a page has no types of Node.
const withDisposable = {
  name: 'with-disposable',
  renderChunk: (text) => (/\bDisposable\b/.test(text) ? `/// <reference lib="esnext.disposable" />\n${text}` : null),
};
// Without this step, types come from the shared chunk, not from another entry point: that of the server needs the types of Node.
const plugins = [{ ...dts(), generateBundle: undefined }, withDisposable];
const manualChunks = (id) => /rx-trade-feed\/(protocol|operators)\/(?!index|node\/)/.exec(id)?.[1];
await bundle(rollup, '.d.ts', entries, { plugins }, { manualChunks });

// A bundler would turn CommonJS into another module.
const commonJs = readdirSync(compiled, { recursive: true }).filter((file) => file.endsWith('.cjs'));
for (const file of commonJs) cpSync(join(compiled, file), join(bundled, file));

// Other programs may be reading dist, so the folder stays, and old files are removed last.
cpSync(bundled, 'dist', { recursive: true });
for (const file of readdirSync('dist', { recursive: true }))
  if (!existsSync(join(bundled, file))) rmSync(join('dist', file), { recursive: true, force: true });
