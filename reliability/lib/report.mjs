// The report of a run: tables on stdout, reliability/results/NAME.json, charts, and its section in docs/reliability.
import { machine, machineLine } from '../../bench/lib/machine.mjs';
import { writePages } from '../../bench/lib/pages.mjs';
import { table } from '../../bench/lib/table.mjs';
import { writeResult } from '../../bench/lib/write-result.mjs';
import { goalTable, reliabilityPages } from './pages.mjs';

const forDocs = { results: 'reliability/results/', charts: 'docs/reliability/' };
const temporary = { results: 'temp/reliability/', charts: 'temp/reliability/' };

/**
 * Prints a result, writes it to files, and updates its section and the figures of the guide. The exit code is 1 if a rule is broken.
 *
 * @param name - the name of the files and of the section: `<!-- reliability:NAME -->` … `<!-- /reliability -->`
 * @param command - the command that repeats the run
 * @param goals - rows of goal.mjs
 * @param charts - as in a benchmark
 * @param tables - `{ title, columns: ['…'], rows: [[…]] }`
 * @param facts - `{ name: text or number }`
 * @param keep - false for a short run: its files go to temp/reliability, and the pages aren't changed
 */
export const report = async ({ name, command, goals = [], charts = [], tables = [], facts = {}, keep = true }) => {
  const found = machine();
  const result = { name, command, measuredAt: new Date().toISOString(), machine: found, goals, tables, charts, facts };
  const json = await writeResult(name, result, keep ? forDocs : temporary);
  const parts = [
    `# ${name}: ${command}`,
    `${machineLine(found)}${keep ? '' : ': SHORT RUN, NOT A RESULT'}`,
    ...tables.map(({ title, columns, rows }) => `${title}\n\n${table(columns, rows)}`),
    ...(goals.length > 0 ? [goalTable(goals)] : []),
    ...Object.entries(facts).map(([fact, value]) => `${fact}: ${value}`),
    `written to ${json}${keep ? ' and docs/reliability' : ''}`,
  ];
  if (keep) await writePages(reliabilityPages());
  console.log(`\n${parts.join('\n\n')}\n`);
  if (goals.some(({ met }) => !met)) process.exitCode = 1;
  return result;
};
