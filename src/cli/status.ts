import { statusOf } from '../operators/connection-status.js';
import { disconnectedText, EventRecord } from '../protocol/event-record.js';
import { failureIn } from '../protocol/feed-state.js';
import { printable } from '../protocol/printable.js';
import { whatHappened } from './errors.js';
import { averageRate, currentRate, perTick, recentEvents, type ShownEvent } from './follow.js';
import { type Status, type Step, tickMs } from './follow.js';
import { type CliContext, drawn, isTerminal, lineView, logged, say, screen } from './terminal.js';
import type { StatusOptions, TerminalSize, View } from './terminal.js';
import { amount, bytes, count, counted, duration, type Fact, factLines, joined, type Line, logLine } from './text.js';
import { lostTime, printed, type Span, sparkline, spread, symbols } from './text.js';

const phaseOf = ({ life, feed, now }: Status) => {
  const [status, failure, last] = [statusOf(life), failureIn(life), life.events.at(-1)];
  if (status?.state === 'live')
    return { mark: symbols.good, title: `live: ${feed}, connection ${life.open?.connection}` };
  if (last?.type === 'ticket-issued') return { mark: symbols.inProgress, title: `opening a connection to ${feed}` };
  if (last?.type === 'ticket-requested' || (failure === undefined && status?.state !== 'reconnecting'))
    return { mark: symbols.inProgress, title: `requesting a ticket for ${feed}` };
  // A failure counts as reconnecting even before that event.
  const leftMs = status?.state === 'reconnecting' ? (status.nextAttemptAt ?? now) - now : 0;
  const attempt = last?.type === 'reconnecting' ? ` (attempt ${last.attempt})` : '';
  const title = `reconnecting ${leftMs > 0 ? `in ${duration(leftMs)}${attempt}` : 'now'}`;
  return { mark: symbols.waiting, title, reason: failure && whatHappened(failure) };
};

/** `● live: market, connection 2 · 17.0 frames/s · 7.1 kB/s · 191 frames · 1 gap, 20 ms` */
export const statusLine = (status: Status): Line => {
  const { mark, title, reason } = phaseOf(status);
  const rate = currentRate(status);
  const flow = `${amount(rate.frames)} frames/s · ${bytes(rate.bytes)}/s · ${totalWords(status)}`;
  return [mark, [` ${title}`, 'bold'], [` · ${reason ?? flow}`]];
};

/** `191 frames · 1 gap, 20 ms` */
export const totalWords = ({ frames, life: { totals } }: Pick<Status, 'frames' | 'life'>): string => {
  const lost = totals.gaps === 0 ? 'no gaps' : joined(', ', counted(totals.gaps, 'gap'), lostTime(totals.lostMs));
  return `${counted(frames, 'frame')} · ${lost}`;
};

// Uses the command's text of a failure: advice for users of the library wouldn't help here.
const eventWords = (event: ShownEvent): string =>
  event.type === 'disconnected' ? disconnectedText(event, whatHappened) : new EventRecord(event).msg;

const attemptsBeforeAdvice = 3;

const eventTexts = ({ event, status }: Step): readonly string[] => {
  if (event.type === 'frame' || event.type === 'tick' || event.type === 'ended') return [];
  const isLost = event.type === 'reconnecting' && event.attempt === attemptsBeforeAdvice && !status.life.hasOpened;
  const advice = isLost ? ['no connection so far; to find the cause, run rx-trade-feed doctor'] : [];
  return [eventWords(event), ...advice];
};

/**
 * Shows a feed on stderr: a status line at the bottom of a terminal, or else its events as log lines.
 *
 * @param more - a text to append to the status. If it's set, a log also shows the status at intervals
 */
export const statusView = (values: StatusOptions, context: CliContext, more?: string): View<Step> => {
  const line = ({ status }: Step): Line => [...statusLine(status), [more ? ` · ${more}` : '']];
  return lineView(values, context, line, eventTexts, more !== undefined);
};

export interface PanelContent {
  readonly service: string;
  /** Returns when the next outage of the service begins, or when this one ends. Missing if it has none. */
  readonly outage?: () => string;
  /** Command lines to try next, each in another terminal. */
  readonly next: readonly string[];
}

const [maxPlainColumns, maxPanelColumns] = [160, 100];

/**
 * Shows the panel of `demo` on a terminal, or else its content as log lines: events, the first frame, and the status
 * every 2 s.
 */
export const panelView = (context: CliContext, content: PanelContent): View<Step> => {
  const { stdout } = context;
  if (isTerminal(stdout, context))
    return drawn(stdout, context, screen, ({ status }, size) => panel(status, { ...content, ...size }));
  const log = (step: Step, isDue: boolean) => {
    const { event, status } = step;
    const first = `first frame, ${bytes(status.bytes)}: ${startOf(status)}`;
    const flow = isDue ? [joined(' · ', printed(statusLine(status), maxPlainColumns), content.outage?.())] : [];
    return [...(event.type === 'frame' ? [printed([[first]], maxPlainColumns)] : []), ...flow, ...eventTexts(step)];
  };
  return logged(stdout, log, 2_000, tickMs);
};

const startOf = ({ lastFrame }: Status): string => {
  const start = lastFrame?.data.subarray(0, maxPlainColumns * 4);
  return lastFrame?.isBinary ? String(start?.toString('hex')) : printable(start?.toString() ?? '');
};

const labelWidth = 12;
const labelled = (label: string, ...spans: Line): Line => [[` ${label.padEnd(labelWidth)}`, 'dim'], ...spans];

type Row = readonly [rank: number, line: Line];
const emptyRow: Row = [14, []];

/**
 * Renders the panel of `demo` to fit the terminal. On one with fewer rows, those with the highest ranks go: first the
 * empty ones, and last the state, the line about Ctrl-C, the latest event and the next outage.
 */
export const panel = (
  status: Status,
  { service, outage, next, columns, rows }: PanelContent & TerminalSize,
): readonly Line[] => {
  const width = Math.min(columns, maxPanelColumns) - 1;
  const { mark, title, reason } = phaseOf(status);
  const { life, recent, startedAt, now } = status;
  const rate = currentRate(status);
  const barCount = Math.max(0, Math.min(40, width - 50));
  const flow = (what: 'frames' | 'bytes', text: (number: number) => string, rateText = text): Line => {
    const line = sparkline(perTick(status, what).slice(-barCount));
    const current: Span = [`${rateText(rate[what])} a second`.padEnd(18), 'bold'];
    return spread(labelled(what, current, [line, 'cyan']), [[`${text(status[what])} in all`]], width);
  };
  const lines: readonly Row[] = [
    [3, spread([[' rx-trade-feed', 'bold']], [[joined(', ', service, outage?.()), 'dim']], width)],
    emptyRow,
    [0, spread([[' '], mark, [` ${title}`, 'bold']], [[duration(now - startedAt)]], width)],
    reason === undefined ? emptyRow : [10, [[`   ${reason}`, 'dim']]],
    [9, flow('frames', count, amount)],
    [9, flow('bytes', bytes)],
    [12, labelled('last frame', [lastFrameWords(status)])],
    [12, labelled('', [startOf(status), 'dim'])],
    emptyRow,
    [11, labelled('gaps', [gapWords(status), life.totals.gaps > 0 ? 'yellow' : undefined])],
    [11, labelled('reconnects', [reconnectCauses(status)])],
    emptyRow,
    ...recent.map((event, n): Row => [n === recent.length - 1 ? 2 : 2 + recent.length - n, recentEvent(status, event)]),
    ...Array<Row>(recentEvents - recent.length).fill(emptyRow),
    emptyRow,
    [13, [[' Try next, in other terminals:', 'dim']]],
    ...next.map((line, index): Row => [13, labelled(`terminal ${index + 2}`, [line, 'cyan'])]),
    emptyRow,
    [1, [[' Ctrl-C ends it with a summary.', 'dim']]],
  ];
  const order = [...lines.keys()].toSorted((one, other) => (lines[one] as Row)[0] - (lines[other] as Row)[0]);
  const kept = new Set(order.slice(0, Math.max(1, rows)));
  return lines.filter((_, index) => kept.has(index)).map(([, line]) => line);
};

const recentEvent = ({ startedAt }: Status, event: ShownEvent): Line => {
  const at = event.type === 'gap' ? event.to : event.at;
  const seconds = (Math.max(0, at - startedAt) / 1_000).toFixed(2);
  const isLoss = event.type === 'gap' || event.type === 'disconnected';
  return labelled(`${seconds} s`.padStart(labelWidth - 2), [eventWords(event), isLoss ? 'yellow' : undefined]);
};

const lastFrameWords = ({ lastFrame: last, now }: Status): string =>
  last === undefined
    ? 'none yet'
    : `${bytes(last.byteLength)}, ${last.isBinary ? 'binary' : 'text'}, ${duration(Math.max(0, now - last.receivedAt))} ago`;

export const gapWords = ({ life: { totals } }: Pick<Status, 'life'>): string =>
  totals.gaps === 0 ? 'none' : joined(', ', count(totals.gaps), lostTime(totals.lostMs, ' without frames'));

/** Counts the reconnects by the failure that caused them: `none`, `3: 2 connection-lost, 1 capacity-full`. */
const reconnectCauses = ({ life }: Status): string => {
  const causes = Object.entries(life.totals.reconnects);
  const total = causes.reduce((sum, [, times]) => sum + times, 0);
  if (causes.length < 2) return causes[0] ? `${count(total)}, after ${causes[0][0]}` : 'none';
  return `${count(total)}: ${causes.map(([code, times]) => `${count(times)} ${code}`).join(', ')}`;
};

export const summaryLines = (status: Status, more: readonly Fact[] = []): string => {
  const rate = averageRate(status);
  const facts: readonly Fact[] = [
    ['frames', `${count(status.frames)}, ${amount(rate.frames)} a second on average`],
    ['bytes', `${bytes(status.bytes)}, ${bytes(rate.bytes)} a second on average`],
    ...losses(status),
    ...more,
  ];
  const lines = factLines(facts).map((line) => `  ${line}\n`);
  return [`Followed ${status.feed} for ${duration(status.now - status.startedAt)}.\n`, ...lines].join('');
};

export const writeSummary = (context: CliContext, status: Status, more: readonly Fact[]): void => {
  const { stderr } = context;
  const { frames, startedAt, now } = status;
  const flow = `${counted(frames, 'frame')}, ${bytes(status.bytes)} in ${duration(now - startedAt)}`;
  const facts = [...losses(status), ...more].map((fact) => fact.join(': '));
  const line = joined('; ', `${flow} (${amount(averageRate(status).frames)} a second)`, ...facts);
  say(stderr, isTerminal(stderr, context) ? summaryLines(status, more) : logLine(line));
};

const losses = (status: Status): readonly Fact[] => {
  const { open, outage } = status.life;
  const down = open === undefined && outage && `without a connection for ${duration(status.now - outage.from)}`;
  return [
    ['gaps', gapWords(status)],
    ['reconnects', reconnectCauses(status)],
    ...(down ? [['at the end', down] as const] : []),
  ];
};
