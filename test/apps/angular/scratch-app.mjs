// Makes an Angular app in a scratch folder as a reader does: `ng new`, then what docs/angular.md says, taken from its fences.
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { newerNode, tarball, temporaryFolder } from '../support.mjs';

const root = join(import.meta.dirname, '../../..');
const run = promisify(execFile);

/** The guide's fences that are files: by the path in their first line, and `proxy.conf.json`. */
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

/** The packages that the guide installs, with the tarball in place of this one. */
const guidePackages = () => {
  const guide = readFileSync(join(root, 'docs/angular.md'), 'utf8');
  const [, packages] = /^npm install (.+)$/m.exec(guide);
  return packages.split(' ').map((name) => (name === 'rx-trade-feed' ? tarball() : name));
};

/**
 * Makes the app.
 *
 * @param versions - the folder of test/apps with the package.json and the lockfile that are installed
 * @returns the folder of the app, functions that run programs there, and `remove`
 */
export const makeApp = async (versions) => {
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

  // One install for the program that makes the app, and for the app.
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

  // What the guide says.
  await install(folder, ...guidePackages());
  for (const [path, code] of Object.entries(guideFiles())) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
  return {
    ...{ folder, node, env },
    ng: (...args) => within(folder, node, ng, ...args),
    run: (...args) => within(folder, node, ...args),
    spawn: (...args) => watched(spawn(node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })),
    write: (path, code) => writeFile(join(folder, path), code),
    read: (path) => readFile(join(folder, path), 'utf8'),
    remove: () => rm(scratch, { recursive: true, force: true }),
  };
};

/** Keeps what a program complains of in `complaints`: esbuild does when it is ended, and that must not look like a failure. */
const watched = (program) => {
  program.complaints = '';
  program.stderr.setEncoding('utf8').on('data', (text) => (program.complaints += text));
  return program;
};
