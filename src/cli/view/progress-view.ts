import type { Writable } from 'node:stream';
import { tickMs } from '../follow/follow.js';
import { printed } from './line.js';
import { noticeView } from './notice-view.js';
import { stamped } from './stamped.js';
import { status } from './status.js';
import type { View } from './view.js';

/** How often a log is told how it goes, in ms. */
export const progressEveryMs = 10_000;
const widest = 200;

/** Writes a plain line for each event that is no frame, and one now and then that says how it goes. */
export const progressView = (output: Writable, more: () => string): View => {
  const notices = noticeView(output);
  let ticks = 0;
  return {
    show: (step) => {
      notices.show(step);
      if (step.happening.type !== 'tick' || ++ticks % (progressEveryMs / tickMs) !== 0) return;
      output.write(stamped(step.tally.now, printed([...status(step.tally), [` · ${more()}`]], widest, false)));
    },
    close: () => undefined,
  };
};
