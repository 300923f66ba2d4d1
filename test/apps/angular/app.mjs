// Creates an Angular app in a temporary folder like a reader: runs `ng new`, then follows docs/angular.md. Runs programs in it.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import {
  buildLimitMs,
  fencesOf,
  newerNode,
  installPackages,
  root,
  run,
  start,
  tarball,
  temporaryFolder,
} from '../support.mjs';

/** The files of the guide: the fences whose first line is a path, and `proxy.conf.json`. */
const guideFiles = () => {
  const fences = fencesOf('docs/angular.md');
  const named = fences.flatMap(({ path, code }) => (path === undefined ? [] : [[path, code]]));
  return [...named, ['proxy.conf.json', fences.find(({ language }) => language === 'json').code]];
};

/** The packages that the guide installs, with a tarball in place of this package. */
const guidePackages = async () => {
  const [, packages] = /^npm install (.+)$/m.exec(readFileSync(join(root, 'docs/angular.md'), 'utf8'));
  const packed = await tarball();
  return packages.split(' ').map((name) => (name === 'rx-trade-feed' ? packed : name));
};

/**
 * Creates the app.
 *
 * @param versions - the folder of test/apps with the package.json and the lockfile that are installed
 * @returns the folder of the app, and functions that run programs there
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
  const within = (cwd, ...args) => run(node, args, { cwd, env, timeout: buildLimitMs });

  // Installs once for both the Angular CLI and the app with the guide's packages.
  const files = ['package.json', 'package-lock.json'];
  for (const file of files) await copyFile(join(root, 'test/apps', versions, file), join(scratch, file));
  await installPackages(scratch, await guidePackages(), { env });
  const { dependencies } = JSON.parse(await readFile(join(scratch, 'package.json'), 'utf8'));
  const asNew = '--defaults --minimal --skip-git --skip-install --ssr=false --style=css --directory app'.split(' ');
  await within(scratch, ng, 'new', 'scratch-app', ...asNew);
  await rename(join(scratch, 'node_modules'), join(folder, 'node_modules'));
  for (const file of files) await rm(join(scratch, file));
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...manifest, devDependencies: {}, dependencies }));

  // Follows the guide.
  for (const [path, code] of guideFiles()) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
  return {
    folder,
    ng: (...args) => within(folder, ng, ...args),
    node: (...args) => within(folder, ...args),
    start: (...args) => start(undefined, node, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }),
    write: (path, code) => writeFile(join(folder, path), code),
    read: (path) => readFile(join(folder, path), 'utf8'),
    /** Copies a file of this folder into the app. */
    add: (file) => copyFile(join(import.meta.dirname, file), join(folder, file)),
  };
};

/** Starts a program in the app's folder. Resolves with its address once it has sent `{ port }`. */
export const startProgram = async (app, ...args) => {
  const program = app.start(...args);
  const [first] = await Promise.race([once(program.child, 'message'), program.ended.then((code) => [code])]);
  if (first?.port !== undefined) return { program, url: `http://127.0.0.1:${first.port}` };
  throw new Error(`${args[0]} ended with ${first}:\n${program.output.stdout}${program.output.stderr}`);
};
