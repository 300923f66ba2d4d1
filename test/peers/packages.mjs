// The programs of Debian that the tests of this folder run. `npm run test:peers` gets them once; a test that is run by itself gets them here.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

// The Python of Debian, whose packages are Debian's too; another one on the PATH may have none.
export const python = '/usr/bin/python3';
export const nginx = '/usr/sbin/nginx';
export const haproxy = '/usr/sbin/haproxy';

const missing = {
  nginx: () => !existsSync(nginx),
  haproxy: () => !existsSync(haproxy),
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

/** Installs what is missing; says which there were. */
export const install = () => {
  const packages = Object.keys(missing).filter((name) => missing[name]());
  if (packages.length === 0) return packages;
  const apt = (...args) =>
    execFileSync('apt-get', args, { stdio: 'pipe', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  try {
    apt('update');
    apt('install', '--yes', '--no-install-recommends', ...packages);
  } catch (cause) {
    throw new Error(`These packages of Debian are needed, and cannot be installed: ${packages.join(', ')}.`, { cause });
  }
  return packages;
};
