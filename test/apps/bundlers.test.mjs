// Bundles a program with each bundler of docs/how-to/bundling.md, runs the bundle, and compares the result with the table there.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { buildImage } from './bundlers/build-image.mjs';
import { installLocked, root, run as execute, start, tableOf, tarball, temporaryFolder } from './support.mjs';

const outside = temporaryFolder('rx-trade-feed-bundles-');
/** Creates a folder outside the project, so that a bundle finds no packages. */
const newFolder = () => mkdtempSync(join(outside, 'bundle-'));

const here = join(import.meta.dirname, 'bundlers');
const guide = readFileSync(join(root, 'docs/how-to/bundling.md'), 'utf8');
const packed = await tarball();

const project = temporaryFolder('rx-trade-feed-bundlers-');
for (const file of ['feed.mjs', 'page.mjs', 'server.mjs']) copyFileSync(join(here, file), join(project, file));
await installLocked(project, 'bundlers');

const { resolve: pathOf } = createRequire(join(project, 'package.json'));
const load = async (name) => import(pathToFileURL(pathOf(name)));
const { startTradeFeedService } = await import(
  pathToFileURL(join(project, 'node_modules/rx-trade-feed/dist/testing/index.js'))
);
const [esbuild, { rollup }, { build: vite }, { default: webpack }, { default: commonjs }, { nodeResolve }] =
  await Promise.all(
    ['esbuild', 'rollup', 'vite', 'webpack', '@rollup/plugin-commonjs', '@rollup/plugin-node-resolve'].map(load),
  );

const service = await startTradeFeedService();
const apiKey = service.createAccount().createApiKey();
const pushing = setInterval(() => service.push('market', 'a frame'), 20);
after(async () => {
  clearInterval(pushing);
  await service.shutdown();
});

const runRollup = async (input, file, { format, ...settings }) => {
  const bundle = await rollup({ input, onwarn: () => undefined, ...settings });
  await bundle.write({ dir: join(file, '..'), format, entryFileNames: 'app.mjs', chunkFileNames: '[name].mjs' });
};
const runWebpack = async (entry, file, settings) => {
  const path = join(file, '..');
  const output = { path, filename: 'app.cjs' };
  // Without a minifier, which takes four fifths of the time. The bundles of esbuild are minified.
  const options = { mode: 'production', entry, output, context: project, optimization: { minimize: false } };
  const stats = await promisify(webpack)({ ...options, ...settings });
  assert.deepEqual(stats.toJson({ all: false, errors: true }).errors, []);
};

/** Writes a bundle for a server. Returns the path of its program. */
const forServer = {
  'esbuild, ESM': (folder, settings) => runEsbuild(join(folder, 'app.mjs'), { format: 'esm', ...settings }),
  'esbuild, CommonJS': (folder, settings) => runEsbuild(join(folder, 'app.cjs'), { format: 'cjs', ...settings }),
  rollup: async (folder, settings) => {
    await runRollup(join(project, 'feed.mjs'), join(folder, 'app.mjs'), { format: 'es', ...settings });
    return join(folder, 'app.mjs');
  },
  'Vite, SSR': async (folder, settings) => {
    const output = { entryFileNames: 'app.mjs', chunkFileNames: '[name].mjs' };
    const build = { ssr: 'feed.mjs', outDir: folder, rollupOptions: { output } };
    await vite({ root: project, configFile: false, logLevel: 'error', build, ...settings });
    return join(folder, 'app.mjs');
  },
  webpack: async (folder, settings) => {
    await runWebpack('./feed.mjs', join(folder, 'app.cjs'), settings);
    return join(folder, 'app.cjs');
  },
};
const runEsbuild = async (outfile, settings) => {
  const options = { absWorkingDir: project, bundle: true, minify: true, platform: 'node', target: 'node20' };
  await esbuild.build({ ...options, logLevel: 'error', entryPoints: ['feed.mjs'], outfile, ...settings });
  return outfile;
};

const rows = tableOf('docs/how-to/bundling.md')
  .slice(2)
  .map(([bundler, code, main, worker]) => ({ bundler, code, main, worker }));

const [, banner] = /^ *`(banner: \{.+\})`$/m.exec(guide);
const settingsOf = (code) => {
  const text = code === '–' ? '' : code.startsWith('banner') ? banner : code;
  return new Function('nodeResolve', 'commonjs', `return { ${text} };`)(nodeResolve, commonjs);
};

/** Runs a bundle. Returns what it printed first. */
const run = async (program, receiveIn) => {
  const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: apiKey, RECEIVE_IN: receiveIn };
  const [result, message] = (await execute(process.execPath, [program], { env, timeout: 60_000 })).split('\n');
  if (result !== 'works') assert.match(message, /mark `rx-trade-feed` as external \(esbuild: `--packages=external`\)/);
  return result;
};

test('the table in docs/how-to/bundling.md has all bundlers', () =>
  assert.deepEqual([...new Set(rows.map(({ bundler }) => bundler))], Object.keys(forServer)));

for (const { bundler, code, main, worker } of rows) {
  test(`${bundler}: ${code}`, async () => {
    // A bundle that contains its packages runs in a folder that has none.
    const hasPackages = !/external/.test(code) && !(bundler === 'Vite, SSR' && code === '–');
    const folder = hasPackages ? newFolder() : join(project, `out-${randomUUID()}`);
    const program = await forServer[bundler](folder, settingsOf(code));
    assert.equal(await run(program, 'main'), main, 'on the main thread');
    assert.equal(await run(program, 'worker'), worker, 'in a worker');
  });
}

test('esbuild, ESM: the testing kit needs one of the two settings', async () => {
  const contents =
    "import { startTradeFeedService } from 'rx-trade-feed/testing'; await (await startTradeFeedService()).shutdown();";
  const stdin = { contents, resolveDir: project };
  const start = async (settings) => {
    const outfile = join(project, `out-${randomUUID()}`, 'app.mjs');
    await runEsbuild(outfile, { entryPoints: undefined, stdin, format: 'esm', ...settings });
    return execute(process.execPath, [outfile]);
  };
  await assert.rejects(start({}), /Dynamic require of "\w+" is not supported/);
  await start({ packages: 'external' });
  await start(settingsOf('banner'));
});

/** Writes a bundle for browsers. Returns its path. */
const forPage = {
  esbuild: async (input, folder) => {
    const options = { absWorkingDir: project, bundle: true, platform: 'browser', format: 'esm', logLevel: 'error' };
    await esbuild.build({ ...options, entryPoints: [input], outfile: join(folder, 'app.mjs') });
    return join(folder, 'app.mjs');
  },
  rollup: async (input, folder) => {
    const plugins = [nodeResolve({ browser: true }), commonjs()];
    await runRollup(join(project, input), join(folder, 'app.mjs'), { format: 'es', plugins });
    return join(folder, 'app.mjs');
  },
  Vite: async (input, folder) => {
    const lib = { entry: input, formats: ['es'], fileName: () => 'app.mjs' };
    await vite({ root: project, configFile: false, logLevel: 'error', build: { lib, outDir: folder } });
    return join(folder, 'app.mjs');
  },
  webpack: async (input, folder) => {
    await runWebpack(`./${input}`, join(folder, 'app.cjs'), {
      target: 'web',
      output: { path: folder, filename: 'app.cjs', publicPath: '' }, // found by the document of a page
    });
    return join(folder, 'app.cjs');
  },
};

for (const [bundler, write] of Object.entries(forPage)) {
  test(`${bundler}: a page with rx-trade-feed throws at once, and one with rx-trade-feed/browser does not`, async () => {
    const program = await write('feed.mjs', newFolder());
    await assert.rejects(
      import(pathToFileURL(program)),
      /^Error: rx-trade-feed is for servers; import rx-trade-feed\/browser/,
    );
    const page = await write('page.mjs', newFolder());
    delete globalThis.feed$;
    globalThis.self = globalThis; // a global of pages, which webpack reads
    await import(pathToFileURL(page));
    assert.equal(typeof globalThis.feed$.subscribe, 'function');
  });
}

test('the Dockerfile of examples/docker builds a bundle that receives, and ends on SIGTERM', async (t) => {
  const context = newFolder();
  const [, build] = /^npm pkg set scripts\.build="(.+?)"$/ms.exec(guide.replaceAll(/\\\n */g, ''));
  const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
  const packages = { rxjs: dependencies.rxjs, 'rx-trade-feed': 'file:rx-trade-feed.tgz' };
  const manifest = { type: 'module', scripts: { build }, dependencies: packages };
  writeFileSync(
    join(context, 'package.json'),
    JSON.stringify({ ...manifest, devDependencies: { esbuild: dependencies.esbuild } }),
  );
  copyFileSync(join(here, 'server.mjs'), join(context, 'server.mjs'));
  copyFileSync(packed, join(context, 'rx-trade-feed.tgz'));
  await execute('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund', '--prefer-offline'], {
    cwd: context,
  });
  const dockerfile = readFileSync(join(root, 'examples/docker/Dockerfile'), 'utf8');
  // The tarball replaces the registry, so every stage finds it.
  const { cwd, env, command } = buildImage(dockerfile, context, () => {
    const root = newFolder();
    mkdirSync(join(root, 'app'));
    copyFileSync(packed, join(root, 'app/rx-trade-feed.tgz'));
    return root;
  });
  assert.equal(existsSync(join(cwd, 'node_modules/esbuild')), false);
  const [program, ...args] = command;
  const feed = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: service.createAccount().createApiKey() };
  const server = start(t, program, args, { cwd, env: { PATH: process.env.PATH, ...feed, ...env } });
  await server.printed(/opened/);
  assert.equal(await server.stop(), 0);
});
