// Runs the feed through and against programs that others wrote: nginx, haproxy, python3-websockets. Installs from Debian what is missing.
// Ends with the line `N passed, N failed`.
//
//   npm run test:peers
//   npm run test:peers -- python      those whose name has this in it
//   npm run test:peers -- --report    and writes what came of it into docs/reliability.md
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exactly } from '../reliability/lib/goal.mjs';
import { report } from '../reliability/lib/report.mjs';
import { install } from '../test/peers/packages.mjs';

const folder = 'test/peers';
const { values, positionals: wanted } = parseArgs({ options: { report: { type: 'boolean' } }, allowPositionals: true });
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.test.mjs'))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
if (files.length === 0) {
  console.error(`No test of ${folder} has ${wanted.join(' or ')} in its name.`);
  process.exit(2);
}

/** Gets what the tests need; without it there is nothing to run. */
const prepare = () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`The build failed:\n${stdout}${stderr}`);
  const installed = install();
  if (installed.length > 0) console.log(`… installed ${installed.join(', ')}`);
};

try {
  prepare();
} catch (error) {
  console.error(`${error.message}\n0 passed, 1 failed`);
  process.exit(1);
}

const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-peers-'));
process.once('exit', () => rmSync(temp, { recursive: true, force: true }));
const tap = join(temp, 'report.tap');
const reporters = [
  ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
  ...['--test-reporter=tap', `--test-reporter-destination=${tap}`],
];
const args = ['--test', '--test-timeout=120000', ...reporters, ...files.map((name) => join(folder, name))];
const code = await new Promise((done, fail) => {
  spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] })
    .once('close', done)
    .once('error', fail);
});
const told = readFileSync(tap, 'utf8');
const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(told)?.[1] ?? 0);
const failed = Math.max(count('fail') + count('cancelled'), code === 0 ? 0 : 1);

// In TAP the tests of a peer stand before the peer itself, and further in.
const rows = [];
let waiting = [];
for (const [, indent, not, name] of told.matchAll(/^( *)(not )?ok \d+ - (.*)$/gm)) {
  if (indent.length > 0) waiting.push([name, not ? '**failed**' : 'passed']);
  else {
    rows.push(...waiting.map(([test, outcome]) => [name, test, outcome]));
    waiting = [];
  }
}
if (values.report)
  await report({
    name: 'peers',
    command: 'npm run test:peers -- --report',
    goals: [exactly('tests that failed', failed, 0)],
    tables: [{ title: 'What each peer did, as the tests are called', columns: ['peer', 'it …', ''], rows }],
    facts: { tests: rows.length },
    keep: wanted.length === 0,
  });
console.log(`${count('pass')} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
