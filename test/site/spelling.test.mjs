import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');
const cspell = (args) =>
  spawnSync(process.execPath, ['node_modules/cspell/bin.mjs', ...args], { cwd: root, encoding: 'utf8' });

test('cspell knows every word of the documents: correct it, or add it to cspell.config.json', () => {
  const { status, stdout, stderr } = cspell(['lint', '--no-progress', '--no-color']);
  assert.equal(status, 0, stdout + stderr);
  assert.match(stderr, /Files checked: \d{2,}/);
});
