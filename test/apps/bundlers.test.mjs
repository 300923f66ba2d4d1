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

// Each bundles a program of the project into a folder, and returns the path of the bundle.
const runEsbuild = async (input, folder, { format = 'esm', ...settings } = {}) => {
  const outfile = join(folder, format === 'cjs' ? 'app.cjs' : 'app.mjs');
  const options = { absWorkingDir: project, bundle: true, minify: true, platform: 'node', target: 'node20', format };
  await esbuild.build({ ...options, logLevel: 'error', entryPoints: [input], outfile, ...settings });
  return outfile;
};
const names = { entryFileNames: 'app.mjs', chunkFileNames: '[name].mjs' };
const runRollup = async (input, folder, settings) => {
  const bundle = await rollup({ input: join(project, input), onwarn: () => undefined, ...settings });
  await bundle.write({ dir: folder, format: 'es', ...names });
  return join(folder, 'app.mjs');
};
const runVite = async (build, folder, settings) => {
  await vite({ root: project, configFile: false, logLevel: 'error', build: { ...build, outDir: folder }, ...settings });
  return join(folder, 'app.mjs');
};
const runWebpack = async (input, folder, { output, ...settings }) => {
  const options = { mode: 'production', entry: `./${input}`, output: { path: folder, filename: 'app.cjs', ...output } };
  // Without a minifier, which takes four fifths of the time. The bundles of esbuild are minified.
  const stats = await promisify(webpack)({
    ...options,
    context: project,
    optimization: { minimize: false },
    ...settings,
  });
  assert.deepEqual(stats.toJson({ all: false, errors: true }).errors, []);
  return join(folder, 'app.cjs');
};

const forServer = {
  'esbuild, ESM': (folder, settings) => runEsbuild('feed.mjs', folder, settings),
  'esbuild, CommonJS': (folder, settings) => runEsbuild('feed.mjs', folder, { format: 'cjs', ...settings }),
  rollup: (folder, settings) => runRollup('feed.mjs', folder, settings),
  'Vite, SSR': (folder, settings) => runVite({ ssr: 'feed.mjs', rollupOptions: { output: names } }, folder, settings),
  webpack: (folder, settings) => runWebpack('feed.mjs', folder, settings),
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
    const options = { entryPoints: undefined, stdin, ...settings };
    return execute(process.execPath, [await runEsbuild('', join(project, `out-${randomUUID()}`), options)]);
  };
  await assert.rejects(start({}), /Dynamic require of "\w+" is not supported/);
  await start({ packages: 'external' });
  await start(settingsOf('banner'));
});

const forPage = {
  esbuild: (input, folder) => runEsbuild(input, folder, { platform: 'browser', minify: false }),
  rollup: (input, folder) => runRollup(input, folder, { plugins: [nodeResolve({ browser: true }), commonjs()] }),
  Vite: (input, folder) => runVite({ lib: { entry: input, formats: ['es'], fileName: () => 'app.mjs' } }, folder),
  // The document of a page would find `publicPath`.
  webpack: (input, folder) => runWebpack(input, folder, { target: 'web', output: { publicPath: '' } }),
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
