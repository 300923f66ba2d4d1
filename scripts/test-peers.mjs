// Runs the tests with programs of others: nginx, haproxy, python3-websockets and jq of Debian, and Anvil and DuckDB of npm. Installs those that are missing.
// Ends with the line `N passed, N failed`.
//
//   npm run test:peers
//   npm run test:peers -- python      the files with this in their name
//   npm run reliability -- peers      also updates docs/reliability.md
import { parseArgs } from 'node:util';
import { exactly } from '../reliability/lib/goal.mjs';
import { report } from '../reliability/lib/report.mjs';
import { install } from '../test/peers/packages.mjs';
import { installAnvil } from './anvil.mjs';
import { installDuckDb } from './duckdb.mjs';
import { buildPackage, finish, prepare, runTests, testFiles } from './run-tests.mjs';

const { values, positionals: names } = parseArgs({ options: { report: { type: 'boolean' } }, allowPositionals: true });
const files = testFiles('test/peers', names);
await prepare(() => {
  buildPackage();
  installAnvil();
  installDuckDb();
  const installed = install();
  if (installed.length > 0) console.log(`… installed ${installed.join(', ')}`);
});
const { passed, failed, tap } = await runTests(files, { concurrency: 1, timeoutMs: 120_000 });

/** Returns a row for each test. In TAP the tests of a peer come before the peer, with a deeper indent. */
const rowsOf = (text) => {
  const rows = [];
  let tests = [];
  for (const [, indent, not, name] of text.matchAll(/^( *)(not )?ok \d+ - (.*)$/gm)) {
    if (indent.length > 0) tests.push([name, not ? '**failed**' : 'passed']);
    else {
      rows.push(...tests.map(([test, outcome]) => [name, test, outcome]));
      tests = [];
    }
  }
  return rows;
};

if (values.report) {
  const rows = rowsOf(tap);
  await report({
    name: 'peers',
    command: 'npm run reliability -- peers',
    goals: [exactly('tests that failed', failed, 0)],
    tables: [{ title: 'Results by peer; the tests are named as in the source', columns: ['peer', 'test', ''], rows }],
    facts: { tests: rows.length },
    keep: names.length === 0,
  });
}
finish({ passed, failed });
