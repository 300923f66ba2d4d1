import * as t from 'io-ts';
import { auditTime, catchError, defer, exhaustMap, map, NEVER, type Observable, of, timer } from 'rxjs';
import type { Dispatcher } from 'undici';
import { type Feed, type FeedEvent, TradeFeedError } from '../index.js';
import { lossesOf } from '../operators/feed-stats.js';
import { afterEvent, type FeedState } from '../protocol/feed-state.js';
import { printable } from '../protocol/printable.js';
import { type CliEvent, currentRate, follow, type Step } from './follow.js';
import { connectionOf, marks } from './view/status.js';
import type { TerminalSize } from './view/terminal.js';
import { amount, bytes, count, counted, duration, joined, type Line, lineWidth } from './view/text.js';
import { lostTime, shortened, type Span, spread, stopwatch } from './view/text.js';

// Reads each part separately, so that an unknown field or an unexpected type doesn't spoil the rest.
const connection = t.intersection([
  t.type({ state: t.keyof({ connecting: null, live: null, reconnecting: null, stopped: null, idle: null }) }),
  t.partial({ failure: t.type({ code: t.string }) }),
]);
const stats = t.partial({
  framesPerSecond: t.number,
  bytesPerSecond: t.number,
  gaps: t.number,
  lostMs: t.number,
  dropped: t.number,
  reconnects: t.record(t.string, t.number),
});
const clients = t.array(t.type({ sent: t.number, missed: t.number }));
const cluster = t.intersection([t.type({ role: t.string, replica: t.string }), t.partial({ owner: t.string })]);

/** The current status of a source. Times are epoch ms. Fields that the source doesn't know are missing. */
export interface Snapshot {
  /** `unknown`: the source has no status. */
  readonly state: keyof typeof marks;
  readonly problem?: string | undefined;
  /** The figures of a feed, as `feedStats` counts them. */
  readonly stats?: t.TypeOf<typeof stats> | undefined;
  readonly lastFrameAt?: number | undefined;
  /** The clients of a relay. `authorizing` counts those whose `authorize` is still pending. */
  readonly clients?: Readonly<Record<'count' | 'authorizing' | 'sent' | 'missed', number>> | undefined;
  /** The replica that answered, if the app has several. */
  readonly cluster?: t.TypeOf<typeof cluster> | undefined;
}

/** Emits the status of a feed. Keeps the last status after the feed has stopped. */
export const feedSnapshots$ = (feed: Feed, events$: Observable<FeedEvent>): Observable<Snapshot> =>
  events$.pipe(follow(feed, {}, NEVER), auditTime(200), map(snapshotOf));

const snapshotOf = ({ event, status }: Step): Snapshot => {
  const { now, lastFrame } = status;
  const life = stoppedBy(event, status.life);
  const { frames, bytes } = currentRate(status);
  const { state, reason, next } = connectionOf({ life, now });
  return {
    state,
    problem: state === 'reconnecting' ? `${reason} Reconnecting ${next}.` : reason,
    stats: {
      framesPerSecond: frames,
      bytesPerSecond: bytes,
      ...lossesOf(life, now),
      reconnects: life.totals.reconnects,
    },
    lastFrameAt: lastFrame?.receivedAt,
  };
};

const stoppedBy = (event: CliEvent, life: FeedState): FeedState => {
  if (event.type !== 'ended' || event.ending.kind !== 'failed') return life;
  const { error: failure } = event.ending;
  if (!(failure instanceof TradeFeedError)) throw failure;
  return afterEvent(life, { type: 'stopped', at: event.at, failure }, undefined);
};

export interface StatusRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
}

/** Polls the status of an app. Emits a status with the problem if a request fails. */
export const statusSnapshots$ = (url: URL, settings: StatusRequest, everyMs = 1_000): Observable<Snapshot> =>
  timer(0, everyMs).pipe(
    exhaustMap(() =>
      defer(() => requestStatus(url, settings)).pipe(
        catchError((error: unknown) => of(noStatus(error as NodeJS.ErrnoException))),
      ),
    ),
  );

const silenceMs = 5_000;

const requestStatus = async (url: URL, { headers, dispatcher }: StatusRequest): Promise<Snapshot> => {
  const { origin, pathname, search } = url;
  const answer = await dispatcher.request({
    origin,
    path: pathname + search,
    method: 'GET',
    headers: { ...headers, accept: 'application/json' },
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  const type = String(answer.headers['content-type'] ?? 'no type');
  const isStatus = answer.statusCode === 200 && type.includes('json');
  if (!isStatus) {
    // The body of a stream would never end.
    answer.body.on('error', () => undefined).destroy();
    const what = answer.statusCode === 200 ? type.split(';', 1).join('') : `HTTP ${answer.statusCode}`;
    return problem(`The address answers with ${what} instead of a status as JSON.`);
  }
  const body: unknown = await answer.body.json();
  return readStatus(body) ?? problem("The JSON at this address isn't a status.");
};

const problem = (text: string): Snapshot => ({ state: 'unknown', problem: text });
const noStatus = ({ message, code }: NodeJS.ErrnoException) => problem(`No status: ${message || String(code)}`);

/**
 * Reads the status of an app: `relay.status()`, with `connection` (from `connectionStatus`), `stats` (from `feedStats`),
 * `lastFrameAt` and `cluster`. Any part may be missing. Returns `undefined` if all are.
 */
export const readStatus = (body: unknown): Snapshot | undefined => {
  if (!t.UnknownRecord.is(body)) return undefined;
  const valid = <T>(type: t.Type<T>, name: string): T | undefined => (type.is(body[name]) ? body[name] : undefined);
  const ofConnection = valid(connection, 'connection');
  const ofRelay = valid(clients, 'clients');
  const parts = {
    stats: valid(stats, 'stats'),
    lastFrameAt: valid(t.number, 'lastFrameAt'),
    clients: ofRelay && {
      count: ofRelay.length,
      authorizing: valid(t.number, 'authorizing') ?? 0,
      sent: sum(ofRelay.map(({ sent }) => sent)),
      missed: sum(ofRelay.map(({ missed }) => missed)),
    },
    cluster: valid(cluster, 'cluster'),
  };
  if (ofConnection === undefined && Object.values(parts).every((part) => part === undefined)) return undefined;
  return { state: ofConnection?.state ?? 'unknown', problem: ofConnection?.failure?.code, ...parts };
};

export interface Row extends Snapshot {
  readonly name: string;
}

/** A figure of a source: how to read it, and how the table, the totals and a log show it. */
interface Column {
  readonly title: string;
  readonly minWidth: number;
  readonly value: (snapshot: Snapshot, now: number) => number | undefined;
  readonly format: (value: number) => string;
  readonly isMarked?: (value: number, snapshot: Snapshot) => boolean;
  /** The sum over all sources means nothing. */
  readonly hasNoTotal?: true;
  /** Its words in a log, which leaves out a column without them. */
  readonly words?: (value: number) => string;
}

const column = (
  title: string,
  minWidth: number,
  value: Column['value'],
  format: Column['format'],
  more: Pick<Column, 'isMarked' | 'hasNoTotal' | 'words'> = {},
): Column => ({ title, minWidth, value, format, ...more });

const ageOf: Column['value'] = ({ lastFrameAt }, now) =>
  lastFrameAt === undefined ? undefined : Math.max(0, now - lastFrameAt);

/** How long a live feed may be silent before it's marked, in ms. */
const oldMs = 10_000;

/**
 * The number columns, with minimum widths so that they don't jump as numbers change. A narrow terminal drops the last
 * ones first.
 */
const numberColumns: readonly Column[] = [
  column('frames/s', 8, ({ stats }) => stats?.framesPerSecond, amount, { words: (rate) => `${amount(rate)} frames/s` }),
  column('age', 7, ageOf, duration, {
    isMarked: (ms, { state }) => state === 'live' && ms > oldMs,
    hasNoTotal: true,
    words: (ms) => `last frame ${duration(ms)} ago`,
  }),
  column('gaps', 4, ({ stats }) => stats?.gaps, count, {
    isMarked: (gaps) => gaps > 0,
    words: (gaps) => counted(gaps, 'gap'),
  }),
  column('reconnects', 10, ({ stats }) => stats?.reconnects && sum(Object.values(stats.reconnects)), count),
  column('clients', 7, ({ clients }) => clients?.count, count),
  column('bytes/s', 8, ({ stats }) => stats?.bytesPerSecond, bytes),
];
const textColumns = [
  { title: ' source', minWidth: 7 },
  { title: 'state', minWidth: 14 },
];
const allColumns = [...textColumns, ...numberColumns];
const titles = allColumns.map(({ title }): Line => [[title, 'dim']]);
const maxNameWidth = 36;

const frameLines = 5;

/**
 * Renders the table of `top`: a row for each source, with details below it if there's room, and totals if there are
 * several sources. The lines fit the terminal; a narrow one drops the last columns.
 */
export const table = (
  sources: readonly Row[],
  { startedAt, now, columns, rows }: TerminalSize & { readonly startedAt: number; readonly now: number },
): readonly Line[] => {
  const width = columns - 1;
  const totals = sources.length > 1 ? [totalCells(sources)] : [];
  const room = Math.max(1, rows - frameLines - totals.length);
  const visible = sources.length <= room ? sources : sources.slice(0, Math.max(1, room - 1));
  const hidden = sources.length - visible.length;
  const shown = visible.map((row) => ({ details: detailsOf(row), cells: cellsOf(row, now) }));
  const widths = fittingWidths([titles, ...shown.map(({ cells }) => cells), ...totals], width);
  let left = hidden > 0 ? 0 : room - visible.length;
  const detailed = shown.flatMap(({ details, cells }) => {
    const fitting = details.slice(0, left);
    left -= fitting.length;
    const lines = fitting.map(([text, style]): Line => [[`   ${printable(text)}`, style]]);
    return [aligned(cells, widths), ...lines];
  });
  const lines: readonly Line[] = [
    spread([[' rx-trade-feed top', 'bold']], [[stopwatch(now - startedAt)]], width),
    [],
    aligned(titles, widths),
    ...detailed,
    ...(hidden > 0 ? [[[` … and ${count(hidden)} more`, 'dim'] as const]] : []),
    ...totals.map((row) => aligned(row, widths)),
    [],
    [[' q or Ctrl-C ends it.', 'dim']],
  ];
  return lines.slice(0, Math.max(1, rows));
};

const cellsOf = (row: Row, now: number): readonly Line[] => [
  [[` ${shortened(printable(row.name), maxNameWidth)}`, 'bold']],
  [marks[row.state], [` ${row.state}`]],
  ...numberColumns.map(({ value, format, isMarked }): Line => {
    const number = value(row, now);
    if (number === undefined) return [['-', 'dim']];
    return [[format(number), isMarked?.(number, row) ? 'yellow' : undefined]];
  }),
];

const totalCells = (rows: readonly Row[]): readonly Line[] => [
  [[' total', 'bold']],
  [[`${count(liveOf(rows))} of ${count(rows.length)} live`]],
  ...numberColumns.map((column): Line => {
    if (column.hasNoTotal) return [];
    const total = totalOf(rows, column);
    return [total === undefined ? ['-', 'dim'] : [column.format(total)]];
  }),
];

const liveOf = (rows: readonly Row[]): number => rows.filter(({ state }) => state === 'live').length;

const totalOf = (rows: readonly Row[], { value, hasNoTotal }: Column): number | undefined => {
  const known = hasNoTotal ? [] : rows.flatMap((row) => value(row, 0) ?? []);
  return known.length === 0 ? undefined : sum(known);
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const separator: Span = ['  '];

/** Returns the widths of the columns that fit, always including the first. */
const fittingWidths = (all: readonly (readonly Line[])[], width: number): readonly number[] => {
  const widths = allColumns.map(({ minWidth }, column) =>
    Math.max(minWidth, ...all.map((row) => lineWidth(row[column] ?? []))),
  );
  const ends = widths.map((_, column) => lineWidth([separator]) * column + sum(widths.slice(0, column + 1)));
  return widths.slice(0, Math.max(1, ends.filter((end) => end <= width).length));
};

const aligned = (row: readonly Line[], widths: readonly number[]): Line =>
  widths.flatMap((width, column): Line => {
    const spans = row[column] ?? [];
    const padding: Span = [' '.repeat(width - lineWidth(spans))];
    const before = column === 0 ? [] : [separator];
    return column < textColumns.length ? [...before, ...spans, padding] : [...before, padding, ...spans];
  });

const detailsOf = ({ state, problem, stats = {}, clients, cluster }: Snapshot): Line => {
  const details: Line = [
    [problem ?? '', state === 'stopped' ? 'red' : 'yellow'],
    [lossWords(stats), 'dim'],
    [clients ? clientWords(clients) : '', 'dim'],
    [cluster ? replicaWords(cluster) : '', 'dim'],
  ];
  return details.filter(([text]) => text !== '');
};

const lossWords = ({ lostMs = 0, dropped = 0, reconnects = {} }: NonNullable<Snapshot['stats']>): string => {
  const causes = Object.entries(reconnects).sort(([, one], [, other]) => other - one);
  return joined(
    '; ',
    causes.length > 0 && `reconnects after ${causes.map(([code, times]) => `${code} (${count(times)})`).join(', ')}`,
    lostTime(lostMs, ' without frames'),
    dropped > 0 && `${counted(dropped, 'frame')} dropped`,
  );
};

const clientWords = ({ count: clients, authorizing, sent, missed }: NonNullable<Snapshot['clients']>): string => {
  const waiting = authorizing > 0 && `${count(authorizing)} waiting for authorize`;
  return joined(', ', counted(clients, 'client'), waiting, `${counted(sent, 'frame')} sent`, `${count(missed)} missed`);
};

const replicaWords = ({ role, replica, owner }: NonNullable<Snapshot['cluster']>): string =>
  `replica ${replica}: ${role}${owner === undefined || owner === replica ? '' : `, the owner is ${owner}`}`;

export const totalLogLine = (rows: readonly Row[]): string =>
  joined(' · ', `total ${liveOf(rows)} of ${rows.length} live`, ...figureWords((column) => totalOf(rows, column)));

export const rowLogLine = (row: Row, now: number): string => {
  const figures = figureWords(({ value }) => value(row, now));
  const details = detailsOf(row).map(([text]) => text);
  return printable(joined(' · ', `${row.name} ${row.state}`, ...figures, ...details));
};

const figureWords = (figureOf: (column: Column) => number | undefined): readonly (string | undefined)[] =>
  numberColumns.map((column) => {
    const figure = figureOf(column);
    return figure === undefined ? undefined : column.words?.(figure);
  });
