import type { Frame } from '../../index.js';
import { statusOf } from '../../operators/connection-status.js';
import { disconnectedText, EventRecord } from '../../protocol/event-record.js';
import { failureIn } from '../../protocol/feed-state.js';
import { printable } from '../../protocol/printable.js';
import { type CliContext, isTerminal } from '../context.js';
import {
  averageRate,
  currentRate,
  perTick,
  recentEvents,
  type ShownEvent,
  type Status,
  type Step,
  tickMs,
} from '../follow.js';
import { whatHappened } from '../errors.js';
import { lineView, progressEveryMs, screenView, type StatusOptions, type TerminalSize, type View } from './terminal.js';
import { amount, bytes, count, counted, duration, type Fact, factLines, joined, type Line, logLine } from './text.js';
import { lostTime, printed, type Span, sparkline, spread, stopwatch, symbols } from './text.js';

export const marks = {
  connecting: symbols.inProgress,
  live: symbols.good,
  reconnecting: symbols.waiting,
  stopped: symbols.failed,
  idle: symbols.inactive,
  unknown: symbols.warning,
} as const satisfies Readonly<Record<string, Span>>;

/** A failure counts as `reconnecting` even before that event. `next`: when the next attempt begins. */
export const connectionOf = ({ life, now }: Pick<Status, 'life' | 'now'>) => {
  const [status, failure] = [statusOf(life), failureIn(life)];
  const leftMs = status?.state === 'reconnecting' ? (status.nextAttemptAt ?? now) - now : 0;
  return {
    state: status?.state ?? (failure ? ('reconnecting' as const) : ('connecting' as const)),
    reason: failure && whatHappened(failure),
    next: leftMs > 0 ? `in ${duration(leftMs)}` : 'now',
  };
};

const phaseOf = (status: Status) => {
  const { life, feed } = status;
  const { state, reason, next } = connectionOf(status);
  const last = life.events.at(-1);
  if (state === 'live') return { mark: marks.live, title: `live: ${feed}, connection ${life.open?.connection}` };
  if (last?.type === 'ticket-issued') return { mark: marks.connecting, title: `opening a connection to ${feed}` };
  if (last?.type === 'ticket-requested' || state === 'connecting')
    return { mark: marks.connecting, title: `requesting a ticket for ${feed}` };
  const attempt = last?.type === 'reconnecting' && next !== 'now' ? ` (attempt ${last.attempt})` : '';
  return { mark: marks.reconnecting, title: `reconnecting ${next}${attempt}`, reason };
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

const maxStatusColumns = 200;

/**
 * Shows a feed on stderr: a status line at the bottom of a terminal, or else its events as log lines.
 *
 * @param more - returns a text to append to the status. If it's set, a log also shows the status at intervals
 */
export const statusView = (values: StatusOptions, context: CliContext, more?: () => string): View<Step> => {
  const line = (step: Step): Line => [...statusLine(step.status), [more ? ` · ${more()}` : '']];
  return lineView(values, context, {
    lines: (step) => [line(step)],
    logEveryMs: more ? progressEveryMs : Infinity,
    log: (step, isDue) => [...eventTexts(step), ...(isDue ? [printed(line(step), maxStatusColumns)] : [])],
  });
};

export interface PanelContent {
  readonly service: string;
  /** Returns when the next outage of the service begins, or when this one ends. Missing if it has none. */
  readonly outage?: () => string;
  /** Command lines to try next, each in another terminal. */
  readonly next: readonly string[];
}

const maxPlainColumns = 160;

/**
 * Shows the panel of `demo` on a terminal, or else its content as log lines: events, the first frame, and the status
 * every 2 s.
 */
export const panelView = (context: CliContext, content: PanelContent): View<Step> =>
  screenView(context, {
    maxColumns: 100,
    lines: ({ status }, size) => panel(status, { ...content, ...size }),
    logEveryMs: 2_000,
    firstLogMs: tickMs,
    log: (step, isDue) => [
      ...(step.event.type === 'frame' ? [firstFrame(step.event)] : []),
      ...(isDue ? [joined(' · ', printed(statusLine(step.status), maxPlainColumns), content.outage?.())] : []),
      ...eventTexts(step),
    ],
  });

const firstFrame = (frame: Frame): string =>
  printed([[`first frame, ${bytes(frame.data.length)}: ${startOf(frame)}`]], maxPlainColumns);

const startOf = ({ data, isBinary }: Frame): string => {
  const start = data.subarray(0, maxPlainColumns * 4);
  return isBinary ? start.toString('hex') : printable(start.toString());
};

const labelWidth = 12;
const labelled = (label: string, ...spans: Line): Line => [[` ${label.padEnd(labelWidth)}`, 'dim'], ...spans];

/**
 * The rows of the panel, from top to bottom. On a terminal with fewer, the rows with the highest numbers go: first the
 * empty ones, and last the state, the line about Ctrl-C, the latest event and the next outage.
 */
const panelRows = {
  title: 3,
  state: 0,
  reason: 10,
  flow: 9,
  frame: 12,
  losses: 11,
  next: 13,
  end: 1,
  empty: 14,
} as const;
/** The latest event goes last. */
const eventRow = (fromLast: number): number => (fromLast === 0 ? 2 : 3 + fromLast);

/** Renders the panel of `demo` to fit the terminal. */
export const panel = (
  status: Status,
  { service, outage, next, columns, rows }: PanelContent & TerminalSize,
): readonly Line[] => {
  const width = columns - 1;
  const { mark, title, reason } = phaseOf(status);
  const { lastFrame, life, recent, startedAt, now } = status;
  const rate = currentRate(status);
  const barCount = Math.max(0, Math.min(40, width - 50));
  const flow = (what: 'frames' | 'bytes', text: (number: number) => string, rateText = text): Line => {
    const line = sparkline(perTick(status, what).slice(-barCount));
    const current: Span = [`${rateText(rate[what])} a second`.padEnd(18), 'bold'];
    return spread(labelled(what, current, [line, 'cyan']), [[`${text(status[what])} in all`]], width);
  };
  const { title: head, state, reason: why, flow: flows, frame, losses: lost, next: tries, end, empty } = panelRows;
  const gap = (): Row => [empty, []];
  const lines: readonly Row[] = [
    [head, titleLine(service, outage?.(), width)],
    gap(),
    [state, spread([[' '], mark, [` ${title}`, 'bold']], [[stopwatch(now - startedAt)]], width)],
    reason === undefined ? gap() : [why, [[`   ${reason}`, 'dim']]],
    [flows, flow('frames', count, amount)],
    [flows, flow('bytes', bytes)],
    [frame, labelled('last frame', [lastFrameWords(status)])],
    [frame, labelled('', [lastFrame ? startOf(lastFrame) : '', 'dim'])],
    gap(),
    [lost, labelled('gaps', [gapWords(status), life.totals.gaps > 0 ? 'yellow' : undefined])],
    [lost, labelled('reconnects', [reconnectCauses(status)])],
    gap(),
    ...recent.map((event, n): Row => [eventRow(recent.length - 1 - n), recentEvent(startedAt, event)]),
    ...Array.from({ length: recentEvents - recent.length }, gap),
    gap(),
    [tries, [[' Try next, in other terminals:', 'dim']]],
    ...next.map((line, index): Row => [tries, labelled(`terminal ${index + 2}`, [line, 'cyan'])]),
    gap(),
    [end, [[' Ctrl-C ends it with a summary.', 'dim']]],
  ];
  const kept = new Set(lines.toSorted(([one], [other]) => one - other).slice(0, Math.max(1, rows)));
  return lines.filter((row) => kept.has(row)).map(([, line]) => line);
};

type Row = readonly [rank: number, line: Line];

const titleLine = (service: string, outage: string | undefined, width: number): Line => {
  const name: Line = [[' rx-trade-feed', 'bold']];
  const full = spread(name, [[joined(', ', service, outage), 'dim']], width);
  return full === name && outage !== undefined ? spread(name, [[outage, 'dim']], width) : full;
};

const recentEvent = (startedAt: number, event: ShownEvent): Line => {
  const at = event.type === 'gap' ? event.to : event.at;
  const seconds = (Math.max(0, at - startedAt) / 1_000).toFixed(2);
  const isLoss = event.type === 'gap' || event.type === 'disconnected';
  return labelled(`${seconds} s`.padStart(labelWidth - 2), [eventWords(event), isLoss ? 'yellow' : undefined]);
};

const lastFrameWords = ({ lastFrame, now }: Status): string => {
  if (lastFrame === undefined) return 'none yet';
  const { data, isBinary, receivedAt } = lastFrame;
  return `${bytes(data.length)}, ${isBinary ? 'binary' : 'text'}, ${duration(Math.max(0, now - receivedAt))} ago`;
};

export const gapWords = ({ life: { totals } }: Pick<Status, 'life'>): string =>
  totals.gaps === 0 ? 'none' : joined(', ', count(totals.gaps), lostTime(totals.lostMs, ' without frames'));

/** Counts the reconnects by the failure that caused them: `none`, `3: 2 connection-lost, 1 capacity-full`. */
const reconnectCauses = ({ life }: Status): string => {
  const causes = Object.entries(life.totals.reconnects);
  const [first] = causes;
  if (first === undefined) return 'none';
  const total = causes.reduce((sum, [, times]) => sum + times, 0);
  if (causes.length === 1) return `${count(total)}, after ${first[0]}`;
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
  stderr.write(isTerminal(stderr, context) ? summaryLines(status, more) : logLine(line));
};

const losses = (status: Status): readonly Fact[] => {
  const { open, outage } = status.life;
  const down =
    open === undefined && outage ? `without a connection for ${duration(status.now - outage.from)}` : undefined;
  return [
    ['gaps', gapWords(status)],
    ['reconnects', reconnectCauses(status)],
    ...(down === undefined ? [] : [['at the end', down] as const]),
  ];
};
