// Runs the features of the package in each runtime, and compares the results with the table of docs/project/runtimes.md. Bun and Deno come from npm.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { generate } from 'selfsigned';
import { bunPackage } from '../../scripts/bun.mjs';
import { installNode, nodeVersions } from '../../scripts/node-matrix.mjs';
import { tarball, temporaryFolder } from './support.mjs';

const root = resolve(import.meta.dirname, '../..');
const bun = bunPackage.replace(/@[^@]+$/, '');
const deno = `@deno/${process.platform}-${process.arch}${process.platform === 'linux' ? '-glibc' : ''}`;

const project = temporaryFolder('rx-trade-feed-runtimes-');
writeFileSync(join(project, 'package.json'), '{"type":"module"}');
const packages = [tarball(), 'rxjs@7', 'selfsigned@5', bunPackage, `${deno}@2.9`];
const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...packages];
execFileSync('npm', install, { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
const program = join(project, 'features.mjs');
copyFileSync(join(import.meta.dirname, 'runtimes/features.mjs'), program);
const inProject = (path) => join(project, 'node_modules', path);

const majorOf = (version) => version.replace(/^v/, '').split('.')[0];
const commands = {
  [`Node ${majorOf(process.version)}`]: [process.execPath],
  ...Object.fromEntries(
    nodeVersions.map((version) => [`Node ${majorOf(version)}`, [join(installNode(version), 'node')]]),
  ),
  'Bun 1.4': [inProject(`${bun}/bin/bun`)],
  'Deno 2.9': [inProject(`${deno}/deno`), 'run', '--allow-all'],
};

const altNames = [
  { type: 7, ip: '127.0.0.1' },
  { type: 2, value: 'localhost' },
];
const pems = await generate([{ name: 'commonName', value: 'localhost' }], {
  keyType: 'ec',
  extensions: [{ name: 'subjectAltName', altNames }],
});
const certificate = JSON.stringify({ cert: pems.cert, key: pems.private });

const cellsOf = (line) =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
const table = readFileSync(join(root, 'docs/project/runtimes.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|'));
const [[, ...runtimes], , ...rows] = table.map(cellsOf);

test('the table has all runtimes', () => assert.deepEqual(runtimes, Object.keys(commands)));

for (const [at, runtime] of runtimes.entries()) {
  for (const [feature, ...cells] of rows) {
    test(`${runtime}: ${feature}: ${cells[at]}`, { timeout: 120_000 }, () => {
      const [command, ...args] = commands[runtime];
      const { status, stdout, stderr } = spawnSync(command, [...args, program, feature, certificate], {
        cwd: project,
        encoding: 'utf8',
      });
      const works = status === 0 && stdout.trim() === 'works';
      assert.equal(works ? 'yes' : 'no', cells[at], stderr);
    });
  }
}
