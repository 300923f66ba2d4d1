// The report of a benchmark: tables on stdout, a JSON file, and charts.
import { machine, machineLine } from './machine.mjs';
import { isQuick, ROUNDS } from './options.mjs';
import { goalTable, table } from './table.mjs';
import { writeResult } from './write-result.mjs';

/** The folders of the files. Those of a quick run go to temp. */
export const folders = isQuick
  ? { results: 'temp/bench/', charts: 'temp/bench/' }
  : { results: 'bench/results/', charts: 'docs/performance/' };

/**
 * Prints the goals and tables of a benchmark, writes `bench/results/<bench>.json`, and draws the charts.
 *
 * @param bench - the name of the benchmark and of its files
 * @param rounds - how often each contender was measured
 * @param goals - rows of `goal`
 * @param charts - `{ id, title, alt, kind: 'bars' | 'columns' | 'lines', x, y, log, opens, series: [{ name, points: [[x, y], …] }] }`
 * @param tables - `{ title, columns: ['…'], rows: [[…]] }`; a chart that `opens` is on docs/performance.md, not next to the tables
 * @param facts - `{ name: text or number }`, listed below the tables
 */
export const report = async ({
  bench,
  command = `npm run bench -- ${bench}`,
  rounds = ROUNDS,
  goals = [],
  charts = [],
  tables = [],
  facts = {},
}) => {
  const found = machine();
  const result = { bench, command, measuredAt: new Date().toISOString(), rounds, machine: found };
  const whole = { ...result, goals, tables, charts, facts };
  const json = await writeResult(bench, whole, folders);

  const parts = [
    `# ${bench}: ${command}`,
    `${machineLine(found)}, ${rounds} rounds${isQuick ? ': QUICK RUN, NOT A RESULT' : ''}`,
    ...tables.map(({ title, columns, rows }) => `${title}\n\n${table(columns, rows)}`),
    ...(goals.length > 0 ? [goalTable(goals)] : []),
    ...goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `${what}: ${note}`),
    ...Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`),
    `written to ${json}`,
  ];
  console.log(`\n${parts.join('\n\n')}\n`);
  return whole;
};
