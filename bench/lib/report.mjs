// What a bench hands over: a table on stdout, a file of JSON, the charts.
import { machine, machineLine } from './machine.mjs';
import { isQuick, ROUNDS } from './options.mjs';
import { goalTable, table } from './table.mjs';
import { readWritten, writeResult } from './write-result.mjs';

/** Where results go: those of `--quick` are not kept with the others. */
export const folders = isQuick
  ? { results: 'temp/bench/', charts: 'temp/bench/' }
  : { results: 'bench/results/', charts: 'docs/performance/' };

/**
 * Prints the goals and tables of a bench, writes `bench/results/<bench>.json`, and draws its charts.
 *
 * @param bench - its name, a file name
 * @param command - what a reader types to repeat it
 * @param goals - rows of `goal`
 * @param charts - `{ id, title, kind: 'bars' | 'columns' | 'lines', x, y, log, series: [{ name, points: [[x, y], …] }] }`
 * @param tables - `{ title, columns: ['…'], rows: [[…]] }`
 * @param facts - `{ name: text or number }`, said below the tables
 */
export const report = async ({ bench, command, goals = [], charts = [], tables = [], facts = {} }) => {
  const found = machine();
  const result = { bench, command, measuredAt: new Date().toISOString(), rounds: ROUNDS, machine: found };
  const whole = { ...result, goals, tables, charts, facts };
  const json = writeResult(bench, whole, folders);

  const parts = [
    `# ${bench}: ${command}`,
    `${machineLine(found)}, ${ROUNDS} rounds${isQuick ? ': A QUICK LOOK, NOT A RESULT' : ''}`,
    ...tables.map(({ title, columns, rows }) => `${title}\n\n${table(columns, rows)}`),
    ...(goals.length > 0 ? [goalTable(goals)] : []),
    ...goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `${what}: ${note}`),
    ...Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`),
    `written to ${json}`,
  ];
  console.log(`\n${parts.join('\n\n')}\n`);
  return whole;
};

/** What a bench wrote, or nothing if it has not been run. */
export const readResult = (bench) => readWritten(bench, folders);
