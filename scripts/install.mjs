// Installs programs that are no dependencies of the project: from Debian, and from npm into `temp`. A program that is there isn't installed again.
//
//   node scripts/install.mjs debian     what `npm run test:peers` and `npm run test:apps` need
//   node scripts/install.mjs nodes      the Node versions of the test matrix, and undici 8 for their tests
//   node scripts/install.mjs bun        Bun, whose WebSocket `npm run bench -- receiving` then compares as well
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const npm = (cwd, ...args) => {
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', [...args, ...quietly], { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
};

const folderOf = (name, version) => join(root, 'temp/installed', `${name.replaceAll('/', '-')}-${version}`);

/** Installs a package from npm into a separate folder, and returns that folder. */
export const fromNpm = (name, version) => {
  const folder = folderOf(name, version);
  if (existsSync(folder)) return folder;
  mkdirSync(join(folder, '..'), { recursive: true });
  // Two programs may install the same package at once: each uses its own folder, and the first one wins.
  const own = mkdtempSync(`${folder}-`);
  writeFileSync(join(own, 'package.json'), '{}');
  npm(own, 'install', `${name}@${version}`);
  try {
    renameSync(own, folder);
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
};

const platform = `${process.platform}-${process.arch}`;

/** The Node versions of the test matrix, next to the oldest one. A machine needs one Node only. */
export const nodeVersions = ['22.23.3', '24.21.0', '26.10.0'];

/** Installs a Node version. Returns the folder of its programs. */
export const installNode = (version) => join(fromNpm(`node-${platform}`, version), `node_modules/node-${platform}/bin`);

/** Installs undici 8, which needs a newer Node than `npm ci` may ask for. */
export const installUndici8 = () => {
  const folder = join(root, 'test/transport/undici-8');
  if (!existsSync(join(folder, 'node_modules/undici'))) npm(folder, 'ci');
};

const bun = [`@oven/bun-${platform}`, '1.4.5'];

/** Installs Bun. Returns its program. */
export const installBun = () => join(fromNpm(...bun), 'node_modules', bun[0], 'bin/bun');

/** Returns the program of Bun, if it is installed. */
export const installedBun = () => (existsSync(folderOf(...bun)) ? installBun() : undefined);

const programs = {
  debian: async () => {
    const { chromium, install } = await import('../test/peers/packages.mjs');
    install();
    chromium();
  },
  nodes: () => {
    nodeVersions.forEach(installNode);
    installUndici8();
  },
  bun: () => console.log(installBun()),
};

if (import.meta.filename === process.argv[1])
  for (const name of process.argv.slice(2)) {
    if (!Object.hasOwn(programs, name))
      throw new Error(`Unknown: ${name}. Known: ${Object.keys(programs).join(', ')}.`);
    await programs[name]();
  }
