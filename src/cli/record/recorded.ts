import { statSync } from 'node:fs';
import { printable } from '../view/printable.js';
import { bytes, counted } from '../view/units.js';

/** Says how large a recording is by now, all its files together: `1.2 MB in feed.ndjson`, `2.1 GB in 3 files`. */
export const recordedWords = (path: string): string => {
  const sizes = sizesOf(path);
  const total = bytes(sizes.reduce((sum, size) => sum + size, 0));
  return `${total} in ${sizes.length > 1 ? counted(sizes.length, 'file') : printable(path)}`;
};

const sizesOf = (path: string): readonly number[] => {
  const sizes: number[] = [];
  for (;;) {
    const stats = statSync(sizes.length === 0 ? path : `${path}.${sizes.length}`, { throwIfNoEntry: false });
    if (stats === undefined) return sizes;
    sizes.push(stats.size);
  }
};
