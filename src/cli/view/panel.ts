import { printable } from '../../protocol/printable.js';
import type { ShownLifecycle } from '../follow/event.js';
import { currentRate, perTick, type Tally } from '../follow/tally.js';
import { type Line, type Span, spread } from './line.js';
import { amount, bytes, count, stopwatch } from './units.js';
import { eventWords, gapWords, lastFrameWords, phaseWords, reconnectCauses } from './words.js';

/** The content of the panel in addition to the tally. */
export interface PanelContent {
  /** A description of the service. */
  readonly service: string;
  /** Command lines to try next, each in another terminal. */
  readonly next: readonly string[];
  readonly columns: number;
  readonly rows: number;
}

const labelWidth = 12;

/**
 * Renders the panel of `demo`: the current phase, rates, gaps, recent events, and commands to try next.
 *
 * A pure function. The number of lines is at most the number of rows of the terminal; the most important lines are at the top.
 */
export const panel = (tally: Tally, { service, next, columns, rows }: PanelContent): readonly Line[] => {
  const width = columns - 1;
  const { mark, title, reason } = phaseWords(tally);
  const rate = currentRate(tally);
  const flow = (label: string, what: 'frames' | 'bytes', perSecond: string, total: string): Line =>
    spread(
      [
        ...labelled(label, [perSecond.padEnd(18), 'bold']),
        [sparkline(perTick(tally, what).slice(-barCount(width))), 'cyan'],
      ],
      [[`${total} in all`]],
      width,
    );
  const lines: readonly Line[] = [
    spread([[' rx-trade-feed', 'bold']], [[service, 'dim']], width),
    [],
    spread([[' '], mark, [` ${title}`, 'bold']], [[stopwatch(tally.now - tally.startedAt)]], width),
    [[`   ${reason ?? ''}`, 'dim']],
    flow('frames', 'frames', `${amount(rate.frames)} a second`, count(tally.frames)),
    flow('bytes', 'bytes', `${bytes(rate.bytes)} a second`, bytes(tally.bytes)),
    labelled('last frame', [lastFrameWords(tally)]),
    labelled('', [lastPayload(tally), 'dim']),
    [],
    labelled('gaps', [gapWords(tally), tally.gaps > 0 ? 'yellow' : 'plain']),
    labelled('reconnects', [reconnectCauses(tally)]),
    [],
    ...Array.from({ length: 6 }, (_, row) => recentEvent(tally, tally.log[row])),
    [],
    [[' Try next, in other terminals:', 'dim']],
    ...next.map((line, index): Line => labelled(`terminal ${index + 2}`, [line, 'cyan'])),
    [],
    [[' Ctrl-C ends it with a summary.', 'dim']],
  ];
  return lines.slice(0, Math.max(1, rows));
};

const labelled = (label: string, ...spans: readonly Span[]): Line => [
  [` ${label.padEnd(labelWidth)}`, 'dim'],
  ...spans,
];

const barCount = (width: number): number => Math.max(0, Math.min(40, width - 50));

const lastPayload = ({ lastFrame }: Tally): string => {
  if (lastFrame === undefined) return '';
  const start = lastFrame.data.subarray(0, 400);
  return lastFrame.isBinary ? start.toString('hex') : printable(start.toString('utf8'));
};

const recentEvent = ({ startedAt }: Tally, event: ShownLifecycle | undefined): Line => {
  if (event === undefined) return [];
  const at = event.type === 'gap' ? event.to : event.at;
  const seconds = (Math.max(0, at - startedAt) / 1_000).toFixed(2);
  return labelled(`${seconds} s`.padStart(labelWidth - 2), [
    eventWords(event),
    event.type === 'gap' || event.type === 'disconnected' ? 'yellow' : 'plain',
  ]);
};

const bars = '▁▂▃▄▅▆▇█';

/** Draws numbers as bars. The largest number has the highest bar. */
export const sparkline = (numbers: readonly number[]): string => {
  const most = Math.max(1, ...numbers);
  return numbers.map((number) => bars.charAt(Math.round((number / most) * (bars.length - 1)))).join('');
};
