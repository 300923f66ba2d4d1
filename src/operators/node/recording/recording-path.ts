import { isAbsolute, sep } from 'node:path';
import { invalidOption } from '../../../protocol/validate.js';

/** Returns the path of a file by its number: `feed.ndjson`, `feed.ndjson.1`, `feed.ndjson.2`, … */
export const fileOf = (path: string, number: number): string => (number === 0 ? path : `${path}.${number}`);

export const partOf = (path: string): { readonly base: string; readonly number: number } => {
  const [, base, number] = /^(.+)\.([1-9]\d{0,14})$/.exec(path) ?? [];
  return base === undefined ? { base: path, number: 0 } : { base, number: Number(number) };
};

// `path.resolve` would shorten `link/..`, which is another folder when `link` is a symbolic link.
export const absolutePath = (path: string): string => (isAbsolute(path) ? path : `${process.cwd()}${sep}${path}`);

export const checkPath = (path: unknown): void => {
  if (typeof path !== 'string' || path === '') throw invalidOption('path', "a path: a text that isn't empty");
};
