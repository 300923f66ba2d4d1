// The Debian packages that tests need. `npm run test:peers` and `npm run test:apps` install them once; a single test file installs them here.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';

// Debian's Python finds Debian's packages. Another Python on the PATH may not.
export const python = '/usr/bin/python3';
export const nginx = '/usr/sbin/nginx';
export const haproxy = '/usr/sbin/haproxy';
export const natsServer = '/usr/sbin/nats-server';
export const redisServer = '/usr/bin/redis-server';

/** Returns the folder with the programs of the newest server; `undefined` if there's none. */
export const postgresPrograms = () => {
  const versions = '/usr/lib/postgresql';
  const found = existsSync(versions) ? readdirSync(versions).map((version) => `${versions}/${version}/bin`) : [];
  return found.filter((folder) => existsSync(`${folder}/initdb`)).at(-1);
};

const runs = (command, ...args) => {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

const isInstalled = {
  jq: () => runs('jq', '--version'),
  nginx: () => existsSync(nginx),
  haproxy: () => existsSync(haproxy),
  'nats-server': () => existsSync(natsServer),
  'redis-server': () => existsSync(redisServer),
  postgresql: () => postgresPrograms() !== undefined,
  'python3-websockets': () => existsSync(python) && runs(python, '-c', 'import websockets'),
  'chromium-headless-shell': () => installedChromium() !== undefined,
};
const ofPeers = Object.keys(isInstalled).filter((name) => !name.startsWith('chromium'));

/** Installs the missing packages, by default those of the peers. Returns their names. */
export const install = (...names) => {
  const packages = (names.length === 0 ? ofPeers : names).filter((name) => !isInstalled[name]());
  if (packages.length === 0) return packages;
  // A lost download mustn't fail everything, and another program may hold the lock for a while.
  const patience = ['-o', 'Acquire::Retries=5', '-o', 'DPkg::Lock::Timeout=300'];
  const apt = (...args) =>
    execFileSync('apt-get', [...patience, ...args], {
      stdio: 'pipe',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  try {
    apt('update');
    apt('install', '--yes', '--no-install-recommends', ...packages);
  } catch (cause) {
    throw new Error(`These Debian packages are required and cannot be installed: ${packages.join(', ')}.`, { cause });
  }
  return packages;
};

// The shell has no window to draw, which is a third of the CPU time of a page that moves.
const browsers = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].map(
  (name) => `/usr/bin/${name}`,
);
const installedChromium = () => [process.env.CHROMIUM_PATH, ...browsers].find((path) => path && existsSync(path));

/** Returns the path of Chromium: CHROMIUM_PATH if it's set. Installs the Debian package if there's none. */
export const chromium = () => {
  const chosen = process.env.CHROMIUM_PATH;
  if (chosen && !existsSync(chosen)) throw new Error(`CHROMIUM_PATH names a missing file (${chosen}).`);
  install('chromium-headless-shell');
  return installedChromium();
};
