// The report of a run: tables on stdout, reliability/results/NAME.json, charts, and a section of docs/reliability.md.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fill } from '../../bench/lib/fill.mjs';
import { machine, machineLine } from '../../bench/lib/machine.mjs';
import { root } from '../../bench/lib/root.mjs';
import { table } from '../../bench/lib/table.mjs';
import { writeResult } from '../../bench/lib/write-result.mjs';
import { goalTable, sectionOf } from './section.mjs';

const forDocs = { results: 'reliability/results/', charts: 'docs/reliability/' };
const temporary = { results: 'temp/reliability/', charts: 'temp/reliability/' };
const guide = new URL('docs/reliability.md', root);

/**
 * Prints a result, writes it to files, and updates its section of the guide. The exit code is 1 if a rule is broken.
 *
 * @param name - the name of the files and of the section: `<!-- reliability:NAME -->` … `<!-- /reliability -->`
 * @param command - the command that repeats the run
 * @param goals - rows of goal.mjs
 * @param charts - as in a benchmark
 * @param tables - `{ title, columns: ['…'], rows: [[…]] }`
 * @param facts - `{ name: text or number }`
 * @param keep - false for a short run: its files go to temp/reliability, and the guide is not changed
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
    `written to ${json}${keep ? await intoGuide(result) : ''}`,
  ];
  console.log(`\n${parts.join('\n\n')}\n`);
  if (goals.some(({ met }) => !met)) process.exitCode = 1;
  return result;
};

/** Updates the section of a result. Returns a text that says so, or that the guide has no such section. */
export const intoGuide = async (result) => {
  const { format, resolveConfig } = await import('prettier');
  const path = fileURLToPath(guide);
  const config = await resolveConfig(path);
  const section = (await format(sectionOf(result), { ...config, parser: 'markdown' })).trim();
  const document = existsSync(guide) ? readFileSync(guide, 'utf8') : '';
  if (!document.includes(`<!-- reliability:${result.name} -->`)) return ' (docs/reliability.md has no section for it)';
  writeFileSync(guide, fill(document, { [result.name]: section }, 'reliability'));
  return ' and docs/reliability.md';
};
