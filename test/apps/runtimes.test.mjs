// Runs the features of the package in each runtime, and compares the results with the table of docs/runtimes.md. Bun and Deno come from npm.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { installBun, installNode, nodeVersions } from '../../scripts/install.mjs';
import { createCertificate, installPackages, tableOf, tarball, temporaryFolder } from './support.mjs';

const deno = `@deno/${process.platform}-${process.arch}${process.platform === 'linux' ? '-glibc' : ''}`;

const project = temporaryFolder('rx-trade-feed-runtimes-');
writeFileSync(join(project, 'package.json'), '{"type":"module"}');
await installPackages(project, [await tarball(), 'rxjs@7', 'selfsigned@5', `${deno}@2.9`]);
const program = join(project, 'features.mjs');
copyFileSync(join(import.meta.dirname, 'runtimes/features.mjs'), program);

const majorOf = (version) => version.replace(/^v/, '').split('.')[0];
const commands = {
  [`Node ${majorOf(process.version)}`]: [process.execPath],
  ...Object.fromEntries(
    nodeVersions.map((version) => [`Node ${majorOf(version)}`, [join(installNode(version), 'node')]]),
  ),
  'Bun 1.4': [installBun()],
  'Deno 2.9': [join(project, 'node_modules', deno, 'deno'), 'run', '--allow-all'],
};

const certificate = JSON.stringify(await createCertificate());

const [[, ...runtimes], , ...rows] = tableOf('docs/runtimes.md');

test('the table in docs/runtimes.md has all runtimes, with yes or no for each feature', () => {
  assert.deepEqual(runtimes, Object.keys(commands));
  for (const [feature, ...cells] of rows) for (const cell of cells) assert.match(cell, /^(yes|no)$/, feature);
});

for (const [at, runtime] of runtimes.entries()) {
  const [command, ...args] = commands[runtime];
  const run = (...features) =>
    spawnSync(command, [...args, program, certificate, ...features], { cwd: project, encoding: 'utf8' });
  const featuresWith = (answer) => rows.filter((row) => row[at + 1] === answer).map(([feature]) => feature);
  const working = featuresWith('yes');
  test(`${runtime}: ${working.join('; ')}`, () => {
    const { status, stdout, stderr } = run(...working);
    assert.equal(stdout.trim(), working.map((feature) => `${feature}: works`).join('\n'), stderr);
    assert.equal(status, 0, stderr);
  });
  // Runs each in a separate process, because it may crash.
  for (const feature of featuresWith('no'))
    test(`${runtime}: not ${feature}`, () => {
      const { status, stdout } = run(feature);
      assert.notEqual(status, 0, `the table says no, but: ${stdout}`);
    });
}
