import { isAbsolute, sep } from 'node:path';
import { invalidOption } from '../../../protocol/rules.js';

/** Names the files of a recording, in the order in which they were written: `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … */
export const fileOf = (path: string, number: number): string => (number === 0 ? path : `${path}.${number}`);

/**
 * Makes a path that stays the same when the working directory changes. `path.resolve` would also shorten `link/..`, which leads elsewhere when
 * `link` is a symbolic link.
 */
export const absolutePath = (path: string): string => (isAbsolute(path) ? path : `${process.cwd()}${sep}${path}`);

/** The end of a line. */
export const newline = 0x0a;
/** What an editor may put before it. */
export const carriageReturn = 0x0d;

/** Throws a `TradeFeedError` with code `invalid-options` for what is no path. */
export const checkPath = (path: unknown): void => {
  if (typeof path !== 'string' || path === '') throw invalidOption('path', 'a path: a text that is not empty');
};
