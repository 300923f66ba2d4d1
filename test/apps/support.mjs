// Installs what the tests of whole apps need. `npm run test:apps` does this once for all tests, and passes the paths in the environment. A single
// test (`node --test test/apps/angular-22.test.mjs`) does it here.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { installNode, nodeVersions } from '../../scripts/node-matrix.mjs';

const root = resolve(import.meta.dirname, '../..');

/** Runs a command to its end. When it fails, the error contains its output. */
const run = (command, args, options = {}) => {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${error.stdout ?? ''}${error.stderr ?? error.message}`);
  }
};

/** Returns the path of the package as npm would publish it, packed from dist. */
export const tarball = () => {
  const existing = process.env.RX_TRADE_FEED_TARBALL;
  if (existing) return existing;
  if (!existsSync(join(root, 'dist/index.js')))
    throw new Error('The folder dist is missing. Run `npm run build` first.');
  const folder = temporaryFolder('rx-trade-feed-tarball-');
  run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  return join(folder, readdirSync(folder)[0]);
};

// Angular 22 builds on Node 22.22, 24.15 and 26 or later.
const buildsAngular = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return (major === 22 && minor >= 22) || (major === 24 && minor >= 15) || major >= 26;
};

/** Returns the bin folder of a Node on which Angular builds: this one, or one from npm. */
export const newerNode = () => {
  const existing = process.env.RX_TRADE_FEED_NODE;
  if (existing) return existing;
  if (buildsAngular()) return dirname(process.execPath);
  return installNode(nodeVersions.find((version) => version.startsWith('24.')));
};

const browsers = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Returns the path of Chromium. Installs the Debian package if it is missing. */
export const chromium = () => {
  const existing = process.env.CHROMIUM_PATH;
  if (existing && !existsSync(existing)) throw new Error(`CHROMIUM_PATH names a missing file (${existing}).`);
  if (existing) return existing;
  const installed = () => browsers.find((path) => existsSync(path));
  if (installed() === undefined) {
    const apt = (...args) => run('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
    try {
      apt('update');
      apt('install', '--yes', '--no-install-recommends', 'chromium');
    } catch (cause) {
      throw new Error('Chromium is missing, and its installation failed. Set CHROMIUM_PATH.', { cause });
    }
  }
  return installed();
};

/** The flags of Chromium for tests. They disable all network use of the browser itself. */
export const chromiumArgs = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
];

/** Creates a folder that is removed when this process exits. */
export const temporaryFolder = (prefix) => {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};
