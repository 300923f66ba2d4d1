import type { Writable } from 'node:stream';
import type { Frame } from '../../index.js';
import { tickMs } from '../follow/follow.js';
import { printed } from './line.js';
import { noticeView } from './notice-view.js';
import { printable } from '../../protocol/printable.js';
import { stamped } from './stamped.js';
import { status } from './status.js';
import { bytes } from './units.js';
import type { View } from './view.js';

const statusEveryTicks = 2_000 / tickMs;
const widest = 160;

/** Writes what the panel shows as plain lines, for a pipe or a file: events, the first frame, and every 2 s how it goes. */
export const plainView = (output: Writable, { service }: { readonly service: string }): View => {
  const notices = noticeView(output);
  output.write(stamped(Date.now(), `streaming from ${service}`));
  let ticks = 0;
  return {
    show: (step) => {
      const { happening, tally } = step;
      const say = (text: string): unknown => output.write(stamped(tally.now, text));
      if (happening.type === 'frame' && tally.frames === 1) say(firstFrame(happening));
      if (happening.type === 'tick' && ticks++ % statusEveryTicks === 0) say(printed(status(tally), widest, false));
      notices.show(step);
    },
    close: () => undefined,
  };
};

const firstFrame = ({ data, isBinary }: Frame): string => {
  const start = data.subarray(0, widest * 4);
  const payload = isBinary ? start.toString('hex') : printable(start.toString());
  return printed([[`first frame, ${bytes(data.length)}: ${payload}`]], widest, false);
};
