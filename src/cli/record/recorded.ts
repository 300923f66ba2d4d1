import { statSync } from 'node:fs';
import { printable } from '../../protocol/printable.js';
import { bytes, counted } from '../view/units.js';

/** Says how large a recording is, all its files together: `1.2 MB in feed.ndjson`, `2.1 GB in 3 files`, `nothing was written`. Never throws. */
export const recordedWords = (path: string): string => {
  const sizes = sizesOf(path);
  // A recording without a line leaves no file behind.
  if (sizes.length === 0) return 'nothing was written';
  const total = bytes(sizes.reduce((sum, size) => sum + size, 0));
  return `${total} in ${sizes.length > 1 ? counted(sizes.length, 'file') : printable(path)}`;
};

// Whatever is wrong with a file, to write to it says so.
const sizesOf = (path: string): readonly number[] => {
  const sizes: number[] = [];
  try {
    for (;;) sizes.push(statSync(sizes.length === 0 ? path : `${path}.${sizes.length}`).size);
  } catch {
    return sizes;
  }
};
