// Builds the parts of the app whose sources have changed.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

const parts = {
  server: {
    output: 'dist/server/main.js',
    sources: ['server', 'package.json', 'node_modules/rx-trade-feed/dist'],
    command: ['node_modules/typescript/bin/tsc', '-p', 'server'],
  },
  page: {
    output: 'dist/page/index.html',
    sources: ['page', 'angular.json', 'package.json', 'node_modules/rx-trade-feed/dist'],
    command: ['node_modules/@angular/cli/bin/ng.js', 'build'],
  },
};

/** Returns which parts are older than their sources. */
export const staleParts = () => ({ server: isStale(parts.server), page: isStale(parts.page) });

const isStale = ({ output, sources }) => {
  const file = join(root, output);
  return !existsSync(file) || sources.some((path) => newest(join(root, path)) > statSync(file).mtimeMs);
};

const newest = (path) => {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  return stat.isDirectory() ? Math.max(...readdirSync(path).map((name) => newest(join(path, name)))) : stat.mtimeMs;
};

/** Returns whether the library of this checkout is newer than the installed copy. */
export const isLibraryStale = () =>
  newest(join(root, '../../src')) > newest(join(root, 'node_modules/rx-trade-feed/dist'));

/** Returns whether Angular 22 builds on this Node. */
export const isPageBuildable = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major >= 26 || (major === 24 && minor >= 15) || (major === 22 && minor >= 22);
};

/** Builds a part. Exits if the build fails. */
export const build = (name) => {
  console.log(`Building the ${name} …`);
  const { status } = spawnSync(process.execPath, parts[name].command, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
};
