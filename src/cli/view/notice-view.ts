import type { Writable } from 'node:stream';
import { eventWords } from './event-words.js';
import { stamped } from './stamped.js';
import type { View } from './view.js';

/** Writes a plain line for each event that is no frame: what a log wants. */
export const noticeView = (output: Writable): View => ({
  show: ({ happening, tally }) => {
    if (happening.type === 'frame' || happening.type === 'tick' || happening.type === 'ended') return;
    output.write(stamped(tally.now, eventWords(happening)));
  },
  close: () => undefined,
});
