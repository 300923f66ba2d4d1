import type { Frame } from '../../index.js';
import { printable } from '../../protocol/printable.js';

const newline = Buffer.from('\n');

/** Makes the line of a frame for a pipe or a file: a text payload as it is, a binary one in base64. */
export const frameLine = ({ data, isBinary }: Frame): Uint8Array | string =>
  isBinary ? `${data.toString('base64')}\n` : Buffer.concat([data, newline]);

/** Makes the line of a frame for a terminal, which must not be steered by a payload. */
export const shownFrameLine = (frame: Frame): string =>
  `${frame.isBinary ? frame.data.toString('base64') : printable(frame.text())}\n`;
