import { statusOf } from '../operators/connection-status.js';
import { disconnectedText, EventRecord } from '../protocol/event-record.js';
import { failureIn } from '../protocol/feed-state.js';
import { whatHappened } from './errors.js';
import { averageRate, currentRate, type ShownEvent, type Status, type Step } from './follow.js';
import { type CliContext, lineView, saySummary, type StatusOptions } from './terminal.js';
import { amount, bytes, count, counted, duration, type Fact, factLines, joined, type Line, symbols } from './text.js';

export const phaseOf = ({ life, feed, now }: Status) => {
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

export const totalWords = ({ frames, life: { totals } }: Pick<Status, 'frames' | 'life'>): string => {
  const lost = totals.gaps === 0 ? 'no gaps' : joined(', ', counted(totals.gaps, 'gap'), lostTime(totals.lostMs));
  return `${counted(frames, 'frame')} · ${lost}`;
};

// `0 ms` would read as if nothing were missing.
const lostTime = (ms: number, words = ''): string | undefined => (ms < 0.5 ? undefined : `${duration(ms)}${words}`);

// Uses the command's text of a failure: advice for users of the library wouldn't help here.
export const eventWords = (event: ShownEvent): string =>
  event.type === 'disconnected' ? disconnectedText(event, whatHappened) : new EventRecord(event).msg;

const attemptsBeforeAdvice = 3;

export const eventTexts = ({ event, status }: Step): readonly string[] => {
  if (event.type === 'frame' || event.type === 'tick' || event.type === 'ended') return [];
  const isLost = event.type === 'reconnecting' && event.attempt === attemptsBeforeAdvice && !status.life.hasOpened;
  const advice = isLost ? ['no connection so far; to find the cause, run rx-trade-feed doctor'] : [];
  return [eventWords(event), ...advice];
};

/** Shows a feed on stderr. If there's `more` to append to the status, a log also shows the status at intervals. */
export const statusView = (values: StatusOptions, context: CliContext, more?: string) => {
  const line = ({ status }: Step): Line => [...statusLine(status), [more ? ` · ${more}` : '']];
  return lineView(values, context, line, eventTexts, more !== undefined);
};

export const gapWords = ({ life: { totals } }: Pick<Status, 'life'>): string =>
  totals.gaps === 0 ? 'none' : joined(', ', count(totals.gaps), lostTime(totals.lostMs, ' without frames'));

/** Counts the reconnects by the failure that caused them: `none`, `3: 2 connection-lost, 1 capacity-full`. */
export const reconnectCauses = ({ life }: Status): string => {
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
  const { frames, startedAt, now } = status;
  const flow = `${counted(frames, 'frame')}, ${bytes(status.bytes)} in ${duration(now - startedAt)}`;
  const facts = [...losses(status), ...more].map((fact) => fact.join(': '));
  const line = joined('; ', `${flow} (${amount(averageRate(status).frames)} a second)`, ...facts);
  saySummary(context, summaryLines(status, more), line);
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
