// The Debian packages that these tests need. `npm run test:peers` installs them once; a single test file installs them here.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

// Debian's Python finds Debian's packages. Another Python on the PATH may not.
export const python = '/usr/bin/python3';
export const nginx = '/usr/sbin/nginx';
export const haproxy = '/usr/sbin/haproxy';
export const natsServer = '/usr/sbin/nats-server';
export const redisServer = '/usr/bin/redis-server';

const missing = {
  jq: () => !runs('jq', '--version'),
  nginx: () => !existsSync(nginx),
  haproxy: () => !existsSync(haproxy),
  'nats-server': () => !existsSync(natsServer),
  'redis-server': () => !existsSync(redisServer),
  'python3-websockets': () => !existsSync(python) || !runs(python, '-c', 'import websockets'),
};

const runs = (command, ...args) => {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** Installs the missing packages, and returns their names. */
export const install = () => {
  const packages = Object.keys(missing).filter((name) => missing[name]());
  if (packages.length === 0) return packages;
  const apt = (...args) =>
    execFileSync('apt-get', args, { stdio: 'pipe', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  try {
    apt('update');
    apt('install', '--yes', '--no-install-recommends', ...packages);
  } catch (cause) {
    throw new Error(`These Debian packages are required and cannot be installed: ${packages.join(', ')}.`, { cause });
  }
  return packages;
};
