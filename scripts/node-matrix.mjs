// The Node versions of the test matrix. They are installed from npm, so a machine needs one Node only.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const nodeVersions = ['22.23.3', '24.21.0', '26.10.0'];

const name = `node-${process.platform}-${process.arch}`;

/** Installs a Node version into `temp/nodes`, unless it is there, and returns the folder of its programs. */
export const installNode = (version) => {
  const folder = resolve(import.meta.dirname, '../temp/nodes', version);
  const bin = join(folder, 'node_modules', name, 'bin');
  if (existsSync(bin)) return bin;
  mkdirSync(join(folder, '..'), { recursive: true });
  // Two checks may install the same version at once: each uses its own folder, and the first one wins.
  const own = mkdtempSync(`${folder}-`);
  writeFileSync(join(own, 'package.json'), '{}');
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: own,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const found = execFileSync(join(own, 'node_modules', name, 'bin/node'), ['--version'], { encoding: 'utf8' }).trim();
  if (found !== `v${version}`) throw new Error(`Installed Node ${found} instead of v${version}.`);
  try {
    renameSync(own, folder);
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (!existsSync(bin)) throw error;
  }
  return bin;
};
