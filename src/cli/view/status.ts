import { currentRate, type Tally } from '../follow/tally.js';
import type { Line } from './line.js';
import { phaseWords } from './phase-words.js';
import { amount, bytes, counted, duration } from './units.js';

/** Renders the one line that says how a feed is doing. Pure. */
export const status = (tally: Tally): Line => {
  const { mark, title, reason } = phaseWords(tally);
  const rate = currentRate(tally);
  const flow = `${amount(rate.frames)} frames/s · ${bytes(rate.bytes)}/s · ${counted(tally.frames, 'frame')} · ${gaps(tally)}`;
  return [mark, [` ${title}`, 'bold'], [` · ${reason ?? flow}`]];
};

const gaps = ({ gaps, lostMs }: Tally): string =>
  gaps === 0 ? 'no gaps' : `${counted(gaps, 'gap')}, ${duration(lostMs)}`;
