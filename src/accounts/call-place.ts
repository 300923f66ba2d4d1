import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Returns the place of the caller's caller, for messages: file, line and column. The path of a file in the working directory is
 * relative.
 */
export const callPlace = (): string => {
  const trace: { readonly stack?: unknown } = {};
  Error.captureStackTrace(trace, callPlace);
  // Line 0 is the error, line 1 the function that calls `callPlace`, line 2 the caller of that function.
  const frame = String(trace.stack).split('\n')[2] ?? '';
  // Either `at name (file:1:2)` or `at file:1:2`.
  const address = /\((.+)\)$/.exec(frame)?.[1] ?? frame.replace(/^ *at (async )?/, '');
  const [, file, position] = /^(.+?)((?::\d+){2})$/.exec(address) ?? [];
  return file === undefined || position === undefined ? 'an unknown place' : pathOf(file) + position;
};

const pathOf = (file: string): string => {
  const path = file.startsWith('file:') ? fileURLToPath(file) : file;
  const inside = relative(process.cwd(), path);
  return inside.startsWith('..') || isAbsolute(inside) ? path : inside;
};
