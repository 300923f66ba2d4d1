// Builds dist. TypeScript 7 checks and compiles `src` into temp/compiled. Then rollup joins the modules, and the declarations, into one file for
// each entry point and the chunks that entry points share. So an import reads few files, and a class exists once.
// Other programs may be reading dist, so the folder stays, and old files are removed last.
import { transform } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';

const compiled = 'temp/compiled';
const dist = 'dist';

const compile = () => {
  rmSync(compiled, { recursive: true, force: true });
  const tsc = ['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.build.json', '--singleThreaded'];
  const { status } = spawnSync(process.execPath, tsc, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};

const { exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
const entryPoints = Object.values(exports).flatMap(({ types, default: file }) => (types ? [file, types] : []));
const declarations = entryPoints.filter((file) => file.endsWith('.d.ts'));
const programs = [
  ...entryPoints.filter((file) => file.endsWith('.js')),
  ...Object.values(bin),
  // One starts the other by its address, so neither may move.
  './dist/worker/start-worker.js',
  './dist/worker/inside/feed-worker.js',
];
// A bundler would turn CommonJS into another module.
const commonJs = ['operators/node/recording/load-native-lock.cjs'];

/** Maps the name of a file in dist to the compiled file. */
const inputOf = (files, end) =>
  Object.fromEntries(
    files.map((file) => {
      const path = relative(dist, file);
      return [path.slice(0, -end.length), join(compiled, path)];
    }),
  );

/** Removes the comments. The declarations have them, and editors read those. */
const withoutComments = {
  name: 'without-comments',
  renderChunk: async (code) => ({ code: (await transform(code, { target: 'es2022' })).code, map: null }),
};

/** Writes the files that belong to some entry points. Returns their names. A warning is an error. */
const bundle = async (files, end, plugins, outputPlugins) => {
  const built = await rollup({
    input: inputOf(files, end),
    external: (id) => /^[^./]/.test(id) || id.endsWith('.cjs'),
    plugins,
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  const { output } = await built.write({
    dir: dist,
    entryFileNames: `[name]${end}`,
    chunkFileNames: ({ name }) => `chunks/${name.replace(/\.d$/, '')}${end}`,
    // A bundler cannot drop the imports that this would add to a file that does not use them.
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    plugins: outputPlugins,
  });
  return output.map(({ fileName }) => fileName);
};

const copyCommonJs = () => {
  for (const file of commonJs) {
    mkdirSync(join(dist, dirname(file)), { recursive: true });
    cpSync(join(compiled, file), join(dist, file));
  }
  return commonJs;
};

compile();
const written = new Set([
  ...(await bundle(programs, '.js', [], [withoutComments])),
  ...(await bundle(declarations, '.d.ts', [dts()], [])),
  ...copyCommonJs(),
]);
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath ?? entry.path, entry.name);
  if (entry.isFile() && !written.has(relative(dist, file))) rmSync(file);
}
