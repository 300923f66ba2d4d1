// Tables in Markdown, for the terminal and for the guide.

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

const wanted = ({ atLeast, atMost }) => (atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`);
const verdict = ({ met, missedBy }) => (met ? 'met' : `**missed by ${Math.max(1, Math.round(missedBy * 100))} %**`);

/** Returns the table of the goals and their measured values. */
export const goalTable = (goals) =>
  table(
    ['goal', 'wanted', 'measured', 'min', 'max', 'rounds', ''],
    goals.map((row) => [row.what, wanted(row), row.median, row.min, row.max, row.rounds, verdict(row)]),
  );
