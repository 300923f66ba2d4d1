import { invalidOption } from '../../protocol/rules.js';

/** Names the files of a recording, in the order in which they were written: `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … */
export const fileOf = (path: string, number: number): string => (number === 0 ? path : `${path}.${number}`);

/** Names the file that is there while somebody records to a path. It is no part of the recording. */
export const lockOf = (path: string): string => `${path}.lock`;

/** The end of a line. */
export const newline = 0x0a;
/** What an editor may put before it. */
export const carriageReturn = 0x0d;

/** Throws a `TradeFeedError` with code `invalid-options` for what is no path. */
export const checkPath = (path: unknown): void => {
  if (typeof path !== 'string' || path === '') throw invalidOption('path', 'a path: a text that is not empty');
};
