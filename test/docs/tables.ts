import { proseOf } from './fences.js';

/** One row of a table: cell text without backticks, by column heading. */
export type Row = Readonly<Record<string, string>>;

/**
 * Returns the tables of a document between a heading and the next heading.
 *
 * @throws Error when the heading does not exist or has no table
 */
export const tablesUnder = (file: string, heading: string): readonly (readonly Row[])[] => {
  const lines = proseOf(file).split('\n');
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading);
  if (start < 0) throw new Error(`${file} has no heading "${heading}".`);
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line));
  const section = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length);
  const tables = section.join('\n').match(/(^\|.*\n?)+/gm) ?? [];
  if (tables.length === 0) throw new Error(`${file} has no table under "${heading}".`);
  return tables.map(rowsOf);
};

const rowsOf = (table: string): readonly Row[] => {
  const [head = [], , ...body] = table.trim().split('\n').map(cellsOf);
  return body.map((cells) => Object.fromEntries(head.map((name, column) => [name, cells[column] ?? ''])));
};

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replace(/^`([^`]+)`$/, '$1'));
