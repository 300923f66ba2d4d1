import type { Output } from '../context.js';

const esc = '\x1b[';

/** The size of a terminal. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Returns the size of a terminal. One without a known size, which some report as 0, has 80 columns and 24 rows. */
export const sizeOf = ({ columns = 0, rows = 0 }: Output): TerminalSize => ({
  columns: columns > 0 ? columns : 80,
  rows: rows > 0 ? rows : 24,
});

/** Draws full screens on a terminal, each over the previous one. */
export interface Screen {
  /** Draws lines from the top, in one write and without clearing the screen first, which would flicker. */
  draw(lines: readonly string[]): void;
  /** Restores the terminal. */
  close(): void;
}

const [enterScreen, leaveScreen] = [`${esc}?1049h`, `${esc}?1049l`];
const [hideCursor, showCursor] = [`${esc}?25l`, `${esc}?25h`];
const [home, eraseRest, eraseBelow] = [`${esc}H`, `${esc}K`, `${esc}J`];

/** Switches a terminal to the alternate screen, without a cursor (xterm control sequences). */
export const screen = (output: Output): Screen => {
  output.write(enterScreen + hideCursor);
  return {
    draw: (lines) => output.write(home + lines.map((line) => line + eraseRest).join('\r\n') + eraseBelow),
    close: () => output.write(showCursor + leaveScreen),
  };
};

/** A line that stays at the bottom of a terminal. */
export interface PinnedLine {
  readonly columns: number;
  /** Draws the line. */
  draw(line: string): void;
  /** Removes the line and restores the terminal. */
  close(): void;
}

const [saveCursor, restoreCursor] = ['\x1b7', '\x1b8'];
const eraseLine = `${esc}2K`;
/** Erases the `^C` that a terminal prints at the cursor after Ctrl-C. */
const eraseControlC = `\r${esc}K`;

/**
 * Reserves the bottom row of a terminal for a status line.
 *
 * The rows above become a scrolling region (DECSTBM), as in apt. All output scrolls there and cannot overwrite the line, including the output
 * of another program such as `jq`.
 */
export const pinnedLine = (output: Output): PinnedLine => {
  const bottom = (): number => sizeOf(output).rows;
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
  // If the cursor is in the bottom row, the newline scrolls it up into the region.
  output.write(`\n${region()}${esc}1A`);
  return {
    get columns() {
      return sizeOf(output).columns;
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
