// Creates an Angular app in a temporary folder like a reader: runs `ng new`, then follows docs/angular.md. Runs programs in it.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import {
  buildLimitMs,
  fencesOf,
  installLocked,
  newerNode,
  root,
  run,
  start,
  temporaryFolder,
  writeFiles,
} from '../support.mjs';

const fences = fencesOf('docs/angular.md');
/** The files of the guide: the fences whose first line is a path, and `proxy.conf.json`. */
const guideFiles = [
  ...fences.flatMap(({ path, code }) => (path === undefined ? [] : [[path, code]])),
  ['proxy.conf.json', fences.find(({ language }) => language === 'json').code],
];
const [, packages] = /^npm install (.+)$/m.exec(readFileSync(join(root, 'docs/angular.md'), 'utf8'));

/** Creates the app, with the versions that a folder of test/apps locks. Returns its folder, and functions that run programs there. */
export const createApp = async (versions) => {
  const scratch = temporaryFolder('angular-app-');
  const folder = join(scratch, 'app');
  const bin = newerNode();
  const node = join(bin, 'node');
  const ng = 'node_modules/@angular/cli/bin/ng.js';
  const path = `${bin}${delimiter}${process.env.PATH}`;
  const env = { ...process.env, PATH: path, NG_CLI_ANALYTICS: 'false', NO_COLOR: '1' };
  const within = (cwd, ...args) => run(node, args, { cwd, env, timeout: buildLimitMs });

  // Installs once for both the Angular CLI and the app with the guide's packages.
  await installLocked(scratch, versions, packages.split(' '), { env });
  const { dependencies } = JSON.parse(await readFile(join(scratch, 'package.json'), 'utf8'));
  const asNew = '--defaults --minimal --skip-git --skip-install --ssr=false --style=css --directory app'.split(' ');
  await within(scratch, ng, 'new', 'scratch-app', ...asNew);
  await rename(join(scratch, 'node_modules'), join(folder, 'node_modules'));
  for (const file of ['package.json', 'package-lock.json']) await rm(join(scratch, file));
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const changed = JSON.stringify({ ...manifest, devDependencies: {}, dependencies });
  writeFiles(folder, [['package.json', changed], ...guideFiles]);
  return {
    folder,
    ng: (...args) => within(folder, ng, ...args),
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
