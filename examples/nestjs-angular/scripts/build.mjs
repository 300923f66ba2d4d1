// What has to be built, and with what.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const parts = {
  server: {
    made: 'dist/server/main.js',
    from: ['server', 'package.json', 'node_modules/rx-trade-feed/dist'],
    command: ['node_modules/typescript/bin/tsc', '-p', 'server'],
  },
  page: {
    made: 'dist/page/index.html',
    from: ['page', 'angular.json', 'package.json', 'node_modules/rx-trade-feed/dist'],
    command: ['node_modules/@angular/cli/bin/ng.js', 'build'],
  },
};

/** Tells which parts are older than what they are made from. */
export const whatIsStale = () => ({ server: isStale(parts.server), page: isStale(parts.page) });

const isStale = ({ made, from }) => {
  const file = join(root, made);
  return !existsSync(file) || from.some((path) => newest(join(root, path)) > statSync(file).mtimeMs);
};

const newest = (path) => {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  return stat.isDirectory() ? Math.max(...readdirSync(path).map((name) => newest(join(path, name)))) : stat.mtimeMs;
};

/** Tells whether this checkout has a newer library than the copy that is installed here. */
export const isLibraryStale = () =>
  newest(join(root, '../../src')) > newest(join(root, 'node_modules/rx-trade-feed/dist'));

/** Tells whether Angular 22 builds on this Node. */
export const isPageBuildable = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major >= 26 || (major === 24 && minor >= 15) || (major === 22 && minor >= 22);
};

/** Builds a part; ends the process when that fails. */
export const build = (name) => {
  console.log(`Building the ${name} …`);
  const { status } = spawnSync(process.execPath, parts[name].command, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};
