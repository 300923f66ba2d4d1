// Results as Markdown tables, for the terminal.
import { machineLine } from './machine.mjs';

/** Returns a number with three significant digits and without an exponent. */
export const figure = (value) => {
  if (typeof value !== 'number') return String(value ?? '–');
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1000) return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ' ');
  return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
};

/** Returns a Markdown table with aligned columns. Numbers are on the right. */
export const table = (columns, rows) => {
  const cells = rows.map((row) => row.map(figure));
  const isNumber = columns.map((_, at) => rows.some((row) => typeof row[at] === 'number'));
  const widths = columns.map((name, at) => Math.max(3, name.length, ...cells.map((row) => row[at]?.length ?? 0)));
  const pad = (text, at) => (isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  const line = (texts) => `| ${texts.map(pad).join(' | ')} |`;
  const rule = widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)));
  return [line(columns), `| ${rule.join(' | ')} |`, ...cells.map(line)].join('\n');
};

const goalTable = (goals) => {
  const isPaired = goals.some(({ rounds }) => rounds > 1);
  return table(
    ['goal', 'wanted', 'measured', ...(isPaired ? ['min', 'max'] : []), ''],
    goals.map(({ what, wanted, measured, min, max, met }) => [
      ...[what, wanted, measured, ...(isPaired ? [min, max] : [])],
      met ? 'met' : '**missed**',
    ]),
  );
};

/** Returns a result as text: the machine, its tables, goals and facts. See write-result.mjs for its shape. */
export const resultText = ({ name, command, rounds, machine, goals, tables, facts, path }) => {
  const notes = goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `${what}: ${note}`);
  const all = [
    `# ${name}: ${command}`,
    `${machineLine(machine)}${rounds === undefined ? '' : `, ${rounds} rounds`}`,
    ...tables.map(({ title, columns, rows }) => `${title}\n\n${table(columns, rows)}`),
    ...(goals.length > 0 ? [goalTable(goals), ...notes] : []),
    ...Object.entries(facts).map(([fact, value]) => `${fact}: ${value}`),
    `written to ${path}`,
  ];
  return `\n${all.join('\n\n')}\n`;
};
