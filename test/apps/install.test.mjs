// Installs the package, as npm would publish it, in an empty project.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tarball, temporaryFolder } from './support.mjs';

test('npm installs the package without a warning', { timeout: 600_000 }, () => {
  const project = temporaryFolder('rx-trade-feed-install-');
  writeFileSync(join(project, 'package.json'), '{}');
  const args = ['install', tarball(), 'rxjs', '--no-audit', '--no-fund', '--prefer-offline'];
  const { status, stderr } = spawnSync('npm', args, { cwd: project, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  // A warning about the settings of this machine says nothing about the package.
  const warnings = stderr.split('\n').filter((line) => line.startsWith('npm warn') && !line.includes('user config'));
  assert.deepEqual(warnings, []);
});
