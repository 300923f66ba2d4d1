import { isAbsolute, sep } from 'node:path';
import { invalidOption } from '../../../protocol/rules.js';

/** Returns the path of a file of a recording, by its number: `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … */
export const fileOf = (path: string, number: number): string => (number === 0 ? path : `${path}.${number}`);

/**
 * Returns a path that does not depend on the working directory. `path.resolve` would shorten `link/..`, which is another folder when `link` is
 * a symbolic link.
 */
export const absolutePath = (path: string): string => (isAbsolute(path) ? path : `${process.cwd()}${sep}${path}`);

/**
 * Checks the path of a recording.
 *
 * @throws TradeFeedError with code `invalid-options` for a value that is not a path
 */
export const checkPath = (path: unknown): void => {
  if (typeof path !== 'string' || path === '') throw invalidOption('path', 'a path: a text that is not empty');
};
