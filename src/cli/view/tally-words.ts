import { averageRate, reconnectCount, type Tally } from '../follow/tally.js';
import { amount, bytes, count, counted, duration } from './units.js';

/** Says which time was lost: `none`, `2, 1.3 s without frames`. */
export const gapWords = ({ gaps, lostMs }: Tally): string =>
  gaps === 0 ? 'none' : `${count(gaps)}, ${duration(lostMs)} without frames`;

/** Says how often and why a connection or an attempt was replaced: `none`, `3: 2 connection-lost, 1 capacity-full`. */
export const reconnectCauses = (tally: Tally): string => {
  const total = reconnectCount(tally);
  const causes = Object.entries(tally.reconnects);
  if (total === 0) return 'none';
  const [first] = causes;
  if (first && causes.length === 1) return `${count(total)}, after ${first[0]}`;
  return `${count(total)}: ${causes.map(([code, number]) => `${count(number)} ${code}`).join(', ')}`;
};

/** Says what the last frame was, without its payload. */
export const lastFrameWords = ({ lastFrame, now }: Tally): string => {
  if (lastFrame === undefined) return 'none yet';
  const { data, isBinary, receivedAt } = lastFrame;
  return `${bytes(data.length)}, ${isBinary ? 'binary' : 'text'}, ${duration(Math.max(0, now - receivedAt))} ago`;
};

/** Makes the summary at the end. */
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

/** Makes the summary in one line. */
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
