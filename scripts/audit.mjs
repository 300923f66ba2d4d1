// Asks the registry for known vulnerabilities in the packages that users install: `dependencies`, at their locked versions.
//
//   node scripts/audit.mjs           exit code 0: none; 1: some; 3: the registry didn't answer, so the result is unknown
//   node scripts/audit.mjs --dev     also the packages that developers install
import { spawnSync } from 'node:child_process';

const args = ['audit', '--json', ...(process.argv.includes('--dev') ? [] : ['--omit=dev'])];
const { stdout, stderr } = spawnSync('npm', args, { encoding: 'utf8' });
let report = { message: stderr };
try {
  report = JSON.parse(stdout);
} catch {
  // npm wrote no report.
}

const { vulnerabilities, metadata, message = 'it returned no report', error } = report;
if (vulnerabilities === undefined || metadata === undefined) {
  const why = String(error?.summary || message).split('\n')[0];
  console.error(`audit: NOT CHECKED, the registry did not answer: ${why}`);
  process.exit(3);
}
const found = Object.values(vulnerabilities);
for (const { name, severity, range, via } of found) {
  const titles = via.map((each) => (typeof each === 'string' ? `by ${each}` : `${each.title} ${each.url}`));
  console.error(`audit: ${severity}: ${name} ${range}: ${titles.join(', ')}`);
}
console.log(`audit: ${found.length} vulnerable packages`);
process.exitCode = found.length === 0 ? 0 : 1;
