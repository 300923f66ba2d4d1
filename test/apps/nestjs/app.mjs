// Creates an application of NestJS with its CLI, and runs it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Creates a folder, and removes it after the test. */
export const createFolder = async (test) => {
  const folder = await mkdtemp(join(tmpdir(), 'rx-trade-feed-nestjs-'));
  test.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
};

/** Returns the packed package: an existing one, or a new one. */
export const tarballIn = async (folder) => {
  const existing = process.env['RX_TRADE_FEED_TARBALL'];
  if (existing) return existing;
  if (!existsSync(join(root, 'dist/nestjs/index.js')))
    throw new Error('The folder dist is missing. Run `npm run build` first.');
  const packed = await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], root);
  return join(folder, packed.trim().split('\n').at(-1));
};

const isInstalled = (name) => !/lint|prettier|supertest|globals|coverage|mau/.test(name);

/**
 * Creates an application with the CLI of a version of NestJS. One installation, with the lockfile of `test/apps`, serves the CLI, the application
 * and all its tests. Packages for linting and formatting are not installed.
 */
export const newApp = async (folder, version) => {
  const locked = join(root, `test/apps/nestjs-${version}`);
  const files = ['package.json', 'package-lock.json'];
  for (const file of files) await copyFile(join(locked, file), join(folder, file));
  await npmInstall(folder);
  const nest = join(folder, 'node_modules/.bin/nest');
  await run(nest, ['new', 'app', '--skip-install', '--skip-git', '--package-manager', 'npm'], folder);
  const app = join(folder, 'app');
  await rename(join(folder, 'node_modules'), join(app, 'node_modules'));
  const { dependencies } = await readJson(join(folder, 'package.json'));
  for (const file of files) await rm(join(folder, file));
  const manifest = await readJson(join(app, 'package.json'));
  const required = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).filter(isInstalled);
  const missing = required.filter((name) => !Object.hasOwn(dependencies, name));
  if (missing.length > 0) throw new Error(`${locked}/package.json lacks ${missing.join(', ')} of the template.`);
  return { app, manifest: { ...manifest, dependencies, devDependencies: {} } };
};

const readJson = async (file) => JSON.parse(await readFile(file, 'utf8'));

/** Installs packages. */
export const npmInstall = async (folder, packages = []) =>
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', ...packages], folder);

/** Moves installed packages out of an application. The returned function moves them back. */
export const setAside = async (app, names) => {
  const moves = names.map((name) => [join(app, 'node_modules', name), join(app, `../${name.replace('/', '-')}`)]);
  for (const [from, to] of moves) await rename(from, to);
  return async () => {
    for (const [from, to] of moves) await rename(to, from);
  };
};

/** Runs a program to its end, and returns its output. When it fails, the error contains the output. */
export const run = async (program, args, cwd, env = process.env) => {
  const { child, output } = start(program, args, cwd, env);
  const timer = setTimeout(() => child.kill('SIGKILL'), 240_000);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}:\n${output()}`);
  return output();
};

/** Starts a program. */
export const start = (program, args, cwd, env) => {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const listeners = new Set();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
      for (const check of listeners) check();
    });
  /** Waits until the program has printed a pattern. */
  const printed = (pattern, waitMs = 60_000) =>
    new Promise((resolve, reject) => {
      const fail = () => done(reject, new Error(`The program did not print ${pattern}:\n${text}`));
      const timer = setTimeout(fail, waitMs);
      const check = () => pattern.test(text) && done(resolve);
      const done = (settle, value) => {
        clearTimeout(timer);
        listeners.delete(check);
        child.off('close', fail);
        settle(value);
      };
      child.once('close', fail);
      listeners.add(check);
      check();
    });
  return { child, output: () => text, printed };
};

/** Returns a free port. */
export const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
};
