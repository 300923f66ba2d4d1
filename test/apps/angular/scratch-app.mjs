// Creates an Angular app in a temporary folder like a reader does: with `ng new`, then with the code fences of docs/angular.md.
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { newerNode, tarball, temporaryFolder } from '../support.mjs';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

/** Returns the files of the guide: the fences with a path in their first line, and `proxy.conf.json`. */
const guideFiles = () => {
  const guide = readFileSync(join(root, 'docs/angular.md'), 'utf8');
  const fences = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const named = fences.flatMap(([, , code]) => {
    const [, path] = /^\/\/ (\S+\.(?:ts|mjs))\n/.exec(code) ?? [];
    return path === undefined ? [] : [[path, code]];
  });
  const [, , proxy] = fences.find(([, language]) => language === 'json');
  return Object.fromEntries([...named, ['proxy.conf.json', proxy]]);
};

/** Returns the packages that the guide installs, with the tarball instead of this package. */
const guidePackages = () => {
  const guide = readFileSync(join(root, 'docs/angular.md'), 'utf8');
  const [, packages] = /^npm install (.+)$/m.exec(guide);
  return packages.split(' ').map((name) => (name === 'rx-trade-feed' ? tarball() : name));
};

/**
 * Creates the app.
 *
 * @param versions - the folder of test/apps with the package.json and the lockfile that are installed
 * @returns the folder of the app, functions that run programs there, and `remove`
 */
export const createApp = async (versions) => {
  const scratch = temporaryFolder('angular-app-');
  const folder = join(scratch, 'app');
  const bin = newerNode();
  const node = join(bin, 'node');
  const ng = 'node_modules/@angular/cli/bin/ng.js';
  const env = {
    ...process.env,
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    NG_CLI_ANALYTICS: 'false',
    NO_COLOR: '1',
  };
  const within = (cwd, file, ...args) => run(file, args, { cwd, env, maxBuffer: 2 ** 26, timeout: 180_000 });
  const install = (cwd, ...names) =>
    within(cwd, 'npm', 'install', ...names, '--no-audit', '--no-fund', '--ignore-scripts');

  // One installation for the Angular CLI and for the app.
  const files = ['package.json', 'package-lock.json'];
  for (const file of files) await copyFile(join(root, 'test/apps', versions, file), join(scratch, file));
  const { dependencies } = JSON.parse(await readFile(join(scratch, 'package.json'), 'utf8'));
  await install(scratch);
  const asNew = '--defaults --minimal --skip-git --skip-install --ssr=false --style=css --directory app'.split(' ');
  await within(scratch, node, ng, 'new', 'scratch-app', ...asNew);
  await rename(join(scratch, 'node_modules'), join(folder, 'node_modules'));
  for (const file of files) await rm(join(scratch, file));
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, devDependencies: {}, dependencies }));

  // Follows the guide.
  await install(folder, ...guidePackages());
  for (const [path, code] of Object.entries(guideFiles())) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
  return {
    ...{ folder, node, env },
    ng: (...args) => within(folder, node, ng, ...args),
    run: (...args) => within(folder, node, ...args),
    spawn: (...args) => withErrors(spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })),
    write: (path, code) => writeFile(join(folder, path), code),
    read: (path) => readFile(join(folder, path), 'utf8'),
    remove: () => rm(scratch, { recursive: true, force: true }),
  };
};

/** Collects the error output of a program in `errors`. esbuild writes to it when it is stopped, which is not a failure. */
const withErrors = (program) => {
  program.errors = '';
  program.stderr.setEncoding('utf8').on('data', (text) => (program.errors += text));
  return program;
};
