// Creates an application of NestJS with its CLI, and runs it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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

/** Creates an application with the CLI of a version of NestJS. Packages for linting and formatting are not installed. */
export const newApp = async (folder, version) => {
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  await npmInstall(folder, [`@nestjs/cli@${version}`, `@nestjs/schematics@${version}`]);
  const nest = join(folder, 'node_modules/.bin/nest');
  await run(nest, ['new', 'app', '--skip-install', '--skip-git', '--package-manager', 'npm'], folder);
  const app = join(folder, 'app');
  const manifest = JSON.parse(await readFile(join(app, 'package.json'), 'utf8'));
  for (const name of Object.keys(manifest.devDependencies))
    if (/lint|prettier|supertest|globals|coverage|mau/.test(name)) delete manifest.devDependencies[name];
  return { app, manifest };
};

/** Installs packages. */
export const npmInstall = async (folder, packages) =>
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', ...packages], folder);

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
