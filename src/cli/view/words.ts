import { printable } from '../../protocol/printable.js';
import type { ShownLifecycle } from '../follow/event.js';
import { averageRate, currentRate, reconnectCount, type Tally } from '../follow/tally.js';
import { whatHappened } from './failure-words.js';
import type { Line, Span } from './line.js';
import { amount, bytes, count, counted, duration } from './units.js';

type EventWords = { readonly [E in ShownLifecycle as E['type']]: (event: E) => string };

const words: EventWords = {
  'ticket-requested': ({ feed }) => `requesting a ticket for ${feed}`,
  'ticket-issued': () => 'ticket issued, good for one handshake',
  opened: ({ feed, connection }) => `connection ${connection} is open: frames of ${feed} follow`,
  disconnected: ({ failure }) => `disconnected: ${whatHappened(failure)}`,
  reconnecting: (event) => `${reconnectWords(event)}, with a fresh ticket`,
  'owner-changed': ({ owner }) => `the replica ${printable(owner)} owns the connection now`,
  gap: ({ durationMs }) => `gap of ${duration(durationMs)}: its frames are not replayed`,
};

/** Describes an event in a few words. */
export const eventWords = (event: ShownLifecycle): string =>
  (words[event.type] as (event: ShownLifecycle) => string)(event);

const reconnectWords = ({ delayMs, attempt }: { readonly delayMs: number; readonly attempt: number }): string =>
  delayMs <= 0 ? 'reconnecting now' : `reconnecting in ${duration(delayMs)} (attempt ${attempt})`;

/** A description of the current phase: a symbol, a title and details. */
export interface PhaseWords {
  readonly mark: Span;
  readonly title: string;
  /** Why the feed is in this phase, if there is a reason. */
  readonly reason: string | undefined;
}

/** Describes the current phase of a feed. */
export const phaseWords = ({ phase, now, feed, connections }: Tally): PhaseWords => {
  switch (phase.name) {
    case 'ticket':
      return { mark: ['○', 'yellow'], title: `requesting a ticket for ${feed}`, reason: undefined };
    case 'handshake':
      return { mark: ['◐', 'yellow'], title: `opening a connection to ${feed}`, reason: undefined };
    case 'open':
      return { mark: ['●', 'green'], title: `live: ${feed}, connection ${connections}`, reason: undefined };
    case 'waiting': {
      const { at, delayMs, attempt } = phase.reconnecting;
      const title = reconnectWords({ delayMs: at + delayMs - now, attempt });
      return { mark: ['○', 'red'], title, reason: whatHappened(phase.failure) };
    }
  }
};

/** Describes the status of a feed in one line. */
export const statusLine = (tally: Tally): Line => {
  const { mark, title, reason } = phaseWords(tally);
  const rate = currentRate(tally);
  const lost = tally.gaps === 0 ? 'no gaps' : `${counted(tally.gaps, 'gap')}, ${duration(tally.lostMs)}`;
  const flow = `${amount(rate.frames)} frames/s · ${bytes(rate.bytes)}/s · ${counted(tally.frames, 'frame')} · ${lost}`;
  return [mark, [` ${title}`, 'bold'], [` · ${reason ?? flow}`]];
};

/** Describes the gaps: `none`, `2, 1.3 s without frames`. */
export const gapWords = ({ gaps, lostMs }: Tally): string =>
  gaps === 0 ? 'none' : `${count(gaps)}, ${duration(lostMs)} without frames`;

/** Describes how often the feed reconnected, and after which failures: `none`, `3: 2 connection-lost, 1 capacity-full`. */
export const reconnectCauses = (tally: Tally): string => {
  const total = reconnectCount(tally);
  const causes = Object.entries(tally.reconnects);
  if (total === 0) return 'none';
  const [first] = causes;
  if (first && causes.length === 1) return `${count(total)}, after ${first[0]}`;
  return `${count(total)}: ${causes.map(([code, number]) => `${count(number)} ${code}`).join(', ')}`;
};

/** Describes the last frame without its payload. */
export const lastFrameWords = ({ lastFrame, now }: Tally): string => {
  if (lastFrame === undefined) return 'none yet';
  const { data, isBinary, receivedAt } = lastFrame;
  return `${bytes(data.length)}, ${isBinary ? 'binary' : 'text'}, ${duration(Math.max(0, now - receivedAt))} ago`;
};

/** Returns the lines of the summary at the end. */
export const summaryLines = (tally: Tally, dropped = 0): readonly string[] => {
  const rate = averageRate(tally);
  const { feed, startedAt, now, frames, bytes: total, lostAt } = tally;
  return [
    `Followed ${feed} for ${duration(now - startedAt)}.`,
    `  frames      ${count(frames)}, ${amount(rate.frames)} a second on average`,
    `  bytes       ${bytes(total)}, ${bytes(rate.bytes)} a second on average`,
    `  gaps        ${gapWords(tally)}`,
    `  reconnects  ${reconnectCauses(tally)}`,
    ...(lostAt === undefined ? [] : [`  at the end  without a connection for ${duration(now - lostAt)}`]),
    ...(dropped === 0 ? [] : [`  dropped     ${counted(dropped, 'line')}: the reader of stdout was too slow`]),
  ];
};

/** Returns the summary as one line. */
export const summaryLine = (tally: Tally, dropped = 0): string => {
  const { frames, bytes: total, startedAt, now } = tally;
  const rate = amount(averageRate(tally).frames);
  return [
    `${counted(frames, 'frame')}, ${bytes(total)} in ${duration(now - startedAt)} (${rate} a second)`,
    `gaps: ${gapWords(tally)}`,
    `reconnects: ${reconnectCauses(tally)}`,
    ...(dropped === 0 ? [] : [`dropped: ${counted(dropped, 'line')}`]),
  ].join('; ');
};
