// The result of the tests with programs of others. `npm run reliability -- peers` runs them and writes it.
import { exactly, report } from './lib/report.mjs';

/** Writes the report. In TAP the tests of a peer come before the peer, with a deeper indent. @param keep - whether it replaces the last result */
export const reportPeers = ({ tap, failed, keep }) => {
  const rows = [];
  let tests = 0;
  for (const [, indent, name] of tap.matchAll(/^( *)(?:not )?ok \d+ - (.*)$/gm))
    if (indent.length > 0) tests += 1;
    else {
      rows.push([name, tests]);
      tests = 0;
    }
  report({
    name: 'peers',
    command: 'npm run reliability -- peers',
    goals: [exactly('tests that failed', failed, 0)],
    tables: [{ title: 'Tests by peer', columns: ['peer', 'tests'], rows }],
    facts: { tests: rows.reduce((sum, [, each]) => sum + each, 0) },
    keep,
  });
};
