import type { Output } from '../context.js';

/** A line at the bottom of a terminal that stays there. */
export interface PinnedLine {
  readonly columns: number;
  /** Draws the line. */
  draw(line: string): void;
  /** Gives the bottom row back. */
  close(): void;
}

const esc = '\x1b[';
const [saveCursor, restoreCursor] = ['\x1b7', '\x1b8'];
const eraseLine = `${esc}2K`;
/** The terminal shows a Ctrl-C as `^C` where the cursor is. */
const eraseControlC = `\r${esc}K`;

/**
 * Takes the bottom row of a terminal for a status line.
 *
 * The rows above become a scrolling region (DECSTBM), as apt does it: whatever writes to the terminal meanwhile, this process
 * or the `jq` behind it, scrolls up there and cannot run into the line.
 */
export const pinnedLine = (output: Output): PinnedLine => {
  const bottom = (): number => output.rows ?? 24;
  const at = (row: number, text: string): string => `${saveCursor}${esc}${row};1H${eraseLine}${text}${restoreCursor}`;
  const region = (): string => `${saveCursor}${esc}1;${bottom() - 1}r${restoreCursor}`;
  let row = bottom();
  let last = '';
  const onResize = (): void => {
    output.write(
      `${saveCursor}${esc}r${restoreCursor}${at(Math.min(row, bottom()), '')}${region()}${at(bottom(), last)}`,
    );
    row = bottom();
  };
  output.on('resize', onResize);
  // The newline scrolls when the cursor is on the bottom row, which is about to leave the region.
  output.write(`\n${region()}${esc}1A`);
  return {
    get columns() {
      return output.columns ?? 80;
    },
    draw: (line) => {
      last = line;
      output.write(at(row, line));
    },
    close: () => {
      output.off('resize', onResize);
      output.write(`${saveCursor}${esc}r${restoreCursor}${at(row, '')}${eraseControlC}`);
    },
  };
};
