// What the tests of whole apps need on a machine. `npm run test:apps` gets it once for all of them and names it in the environment; a
// test that is run by itself (`node --test test/apps/angular-22.test.mjs`) gets it here.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { installNode, nodeVersions } from '../../scripts/node-matrix.mjs';

const root = resolve(import.meta.dirname, '../..');

/** Runs a command to its end; its output is shown when it fails. */
const run = (command, args, options = {}) => {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${error.stdout ?? ''}${error.stderr ?? error.message}`);
  }
};

/** Gives the path of the package as npm would publish it, packed out of dist. */
export const tarball = () => {
  const given = process.env.RX_TRADE_FEED_TARBALL;
  if (given) return given;
  if (!existsSync(join(root, 'dist/index.js'))) throw new Error('There is no dist: run `npm run build` first.');
  const folder = temporaryFolder('rx-trade-feed-tarball-');
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  return join(folder, readdirSync(folder)[0]);
};

// What Angular 22 builds on: Node 22.22, 24.15 or 26 and later.
const buildsAngular = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return (major === 22 && minor >= 22) || (major === 24 && minor >= 15) || major >= 26;
};

/** Gives the folder of programs of a Node that Angular builds on: this one, or one from npm. */
export const newerNode = () => {
  const given = process.env.RX_TRADE_FEED_NODE;
  if (given) return given;
  if (buildsAngular()) return dirname(process.execPath);
  return installNode(nodeVersions.find((version) => version.startsWith('24.')));
};

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Gives the path of Chromium; installs the one of Debian where there is none. */
export const chromium = () => {
  const given = process.env.CHROMIUM_PATH;
  if (given && !existsSync(given)) throw new Error(`There is no Chromium at CHROMIUM_PATH (${given}).`);
  if (given) return given;
  const installed = () => browsers.find((path) => existsSync(path));
  if (installed() === undefined) {
    const apt = (...args) => run('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
    try {
      apt('update');
      apt('install', '--yes', '--no-install-recommends', 'chromium');
    } catch (cause) {
      throw new Error('There is no Chromium, and it cannot be installed: name one in CHROMIUM_PATH.', { cause });
    }
  }
  return installed();
};

/** How Chromium is started for a test: without anything that would go to a network. */
export const chromiumArgs = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
];

/** Makes a folder that goes with this process. */
export const temporaryFolder = (prefix) => {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
