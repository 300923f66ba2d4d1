import { printable } from '../../protocol/printable.js';
import { type Line, lineWidth, shortened, type Span, spread } from '../view/line.js';
import { amount, bytes, count, duration, stopwatch } from '../view/units.js';
import { detailsOf } from './details.js';
import type { Snapshot } from './snapshot.js';

/** A row of the table. `snapshot` is missing before the first one. */
export interface Row {
  readonly name: string;
  readonly snapshot: Snapshot | undefined;
}

/** The times and the size of a table. */
export interface TableFacts {
  readonly startedAt: number;
  readonly now: number;
  readonly columns: number;
  readonly rows: number;
}

/** The lines above and below the rows. */
const frameLines = 5;

/**
 * Renders the table of `top`: one row for each source, with details below it if there is room.
 *
 * A pure function. The lines fit the terminal. On a narrow one the last columns are missing.
 */
export const table = (sources: readonly Row[], { startedAt, now, columns, rows }: TableFacts): readonly Line[] => {
  const width = columns - 1;
  const room = Math.max(1, rows - frameLines);
  const visible = sources.length <= room ? sources : sources.slice(0, Math.max(1, room - 1));
  const cells = visible.map((row) => cellsOf(row, now));
  const widths = fittingWidths([titles, ...cells], width);
  const hidden = sources.length - visible.length;
  const details = hidden > 0 ? [] : detailsWithin(visible, room - visible.length);
  const lines: readonly Line[] = [
    spread([[' rx-trade-feed top', 'bold']], [[stopwatch(now - startedAt)]], width),
    [],
    aligned(titles, widths),
    ...cells.flatMap((row, index) => [aligned(row, widths), ...(details[index] ?? [])]),
    ...(hidden > 0 ? [[[` … and ${count(hidden)} more`, 'dim'] as const]] : []),
    [],
    [[' q or Ctrl-C ends it.', 'dim']],
  ];
  return lines.slice(0, Math.max(1, rows));
};

/** The columns with their minimum widths, so that changing numbers do not move them. Those at the end are removed first on a narrow terminal. */
const columnsOfTable = [
  { title: ' source', minWidth: 7 },
  { title: 'state', minWidth: 14 },
  { title: 'frames/s', minWidth: 8 },
  { title: 'age', minWidth: 7 },
  { title: 'gaps', minWidth: 4 },
  { title: 'reconnects', minWidth: 10 },
  { title: 'clients', minWidth: 7 },
  { title: 'bytes/s', minWidth: 8 },
] as const;
const titles = columnsOfTable.map(({ title }): Line => [[title, 'dim']]);
/** The number of columns at the left that contain text. The others contain numbers, which are aligned right. */
const textColumns = 2;
const maxNameWidth = 36;
const separator: Span = ['  '];

const marks = {
  connecting: ['○', 'yellow'],
  live: ['●', 'green'],
  reconnecting: ['○', 'red'],
  stopped: ['■', 'red'],
  idle: ['○', 'dim'],
  unknown: ['?', 'yellow'],
} as const satisfies Readonly<Record<Snapshot['state'], Span>>;

/** A live feed without a frame for longer than this is marked, in ms. */
const oldMs = 10_000;

const cellsOf = ({ name, snapshot = { state: 'connecting' } }: Row, now: number): readonly Line[] => {
  const { state, stats: { framesPerSecond, bytesPerSecond, gaps, reconnects } = {}, lastFrameAt, clients } = snapshot;
  const ageMs = lastFrameAt === undefined ? undefined : Math.max(0, now - lastFrameAt);
  const total = reconnects && Object.values(reconnects).reduce((sum, number) => sum + number, 0);
  return [
    [[` ${shortened(printable(name), maxNameWidth)}`, 'bold']],
    [marks[state], [` ${state}`]],
    cell(framesPerSecond, amount),
    cell(ageMs, duration, state === 'live' && (ageMs ?? 0) > oldMs),
    cell(gaps, count, (gaps ?? 0) > 0),
    cell(total, count),
    cell(clients?.count, count),
    cell(bytesPerSecond, bytes),
  ];
};

const cell = (value: number | undefined, format: (value: number) => string, isMarked = false): Line => [
  value === undefined ? ['-', 'dim'] : [format(value), isMarked ? 'yellow' : 'plain'],
];

/** Returns the widths of the columns that fit. The first one is always shown. */
const fittingWidths = (all: readonly (readonly Line[])[], width: number): readonly number[] => {
  const widths = columnsOfTable.map(({ minWidth }, column) =>
    Math.max(minWidth, ...all.map((row) => lineWidth(row[column] ?? []))),
  );
  const ends = widths.map((_, column) => lineWidth([separator]) * column + sum(widths.slice(0, column + 1)));
  return widths.slice(0, Math.max(1, ends.filter((end) => end <= width).length));
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const aligned = (row: readonly Line[], widths: readonly number[]): Line =>
  widths.flatMap((width, column): Line => {
    const spans = row[column] ?? [];
    const padding: Span = [' '.repeat(width - lineWidth(spans))];
    const before = column === 0 ? [] : [separator];
    return column < textColumns ? [...before, ...spans, padding] : [...before, padding, ...spans];
  });

/** Returns the details of each row. Rows at the top have precedence. */
const detailsWithin = (sources: readonly Row[], room: number): readonly (readonly Line[])[] => {
  let left = room;
  return sources.map(({ snapshot }) => {
    const lines = snapshot === undefined ? [] : detailsOf(snapshot).slice(0, left);
    left -= lines.length;
    return lines.map(([text, style]): Line => [[`   ${printable(text)}`, style]]);
  });
};
