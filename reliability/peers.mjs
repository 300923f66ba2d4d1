// The section of docs/reliability/tests.md about the tests with programs of others. `npm run reliability -- peers` runs them and writes it.
import { exactly } from './lib/goal.mjs';
import { report } from './lib/report.mjs';

/** Returns a row for each test. In TAP the tests of a peer come before the peer, with a deeper indent. */
const rowsOf = (tap) => {
  const rows = [];
  let tests = [];
  for (const [, indent, not, name] of tap.matchAll(/^( *)(not )?ok \d+ - (.*)$/gm)) {
    if (indent.length > 0) tests.push([name, not ? '**failed**' : 'passed']);
    else {
      rows.push(...tests.map(([test, outcome]) => [name, test, outcome]));
      tests = [];
    }
  }
  return rows;
};

/** Writes the report. @param keep - whether the result replaces the last one */
export const reportPeers = ({ tap, failed, keep }) => {
  const rows = rowsOf(tap);
  return report({
    name: 'peers',
    command: 'npm run reliability -- peers',
    goals: [exactly('tests that failed', failed, 0)],
    tables: [{ title: 'Results by peer; the tests are named as in the source', columns: ['peer', 'test', ''], rows }],
    facts: { tests: rows.length },
    keep,
  });
};
