import type { Output } from '../context.js';

/** A terminal on which whole pictures are drawn, each over the last one. */
export interface Screen {
  /** Draws lines from the top, in one write and without clearing first, so that nothing flickers. */
  draw(lines: readonly string[]): void;
  /** Gives the terminal back as it was. */
  close(): void;
}

const esc = '\x1b[';
const [enter, leave] = [`${esc}?1049h`, `${esc}?1049l`];
const [hideCursor, showCursor] = [`${esc}?25l`, `${esc}?25h`];
const [home, eraseLine, eraseBelow] = [`${esc}H`, `${esc}K`, `${esc}J`];

/** Takes over a terminal: the alternate screen of it, without a cursor (xterm control sequences). */
export const screen = (output: Output): Screen => {
  output.write(enter + hideCursor);
  return {
    draw: (lines) => output.write(home + lines.map((line) => line + eraseLine).join('\r\n') + eraseBelow),
    close: () => output.write(showCursor + leave),
  };
};
