// The Nodes beside the installed one that the test suite runs on. They come from npm, so that a machine needs only one Node.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const nodeVersions = ['22.23.3', '24.21.0', '26.10.0'];

/** Installs a Node into a temporary folder, which goes with this process; returns its folder of programs. */
export const installNode = (version) => {
  const folder = mkdtempSync(join(tmpdir(), `node-${version}-`));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'package.json'), '{}');
  const name = `node-${process.platform}-${process.arch}`;
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const bin = join(folder, 'node_modules', name, 'bin');
  const found = execFileSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' }).trim();
  if (found !== `v${version}`) throw new Error(`Installed Node ${version}, got ${found}.`);
  return bin;
};
