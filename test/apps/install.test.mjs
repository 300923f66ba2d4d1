// Installs the package, as npm would publish it, in an empty project.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tarball, temporaryFolder } from './support.mjs';

/** Installs packages in an empty project. Returns the warnings of npm. */
const warningsOf = (...packages) => {
  const project = temporaryFolder('rx-trade-feed-install-');
  writeFileSync(join(project, 'package.json'), '{}');
  // The machine's settings could hide a warning.
  const shown = ['--loglevel=warn', '--no-color', '--no-legacy-peer-deps'];
  const args = ['install', ...packages, '--no-audit', '--no-fund', '--prefer-offline', ...shown];
  const { status, stderr } = spawnSync('npm', args, { cwd: project, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stderr.split('\n').filter((line) => /^npm warn/i.test(line));
};

test('npm installs the package without a warning', async () => {
  const warnings = warningsOf(await tarball(), 'rxjs@7');
  // npm may also warn about the machine's settings, but then it does so for rxjs alone as well.
  const ofMachine = warnings.length === 0 ? [] : warningsOf('rxjs@7');
  assert.deepEqual(
    warnings.filter((line) => !ofMachine.includes(line)),
    [],
  );
});
