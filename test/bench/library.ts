import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Imports a JavaScript module of `bench/`. */
export const benchModule = async (path: string): Promise<unknown> =>
  import(pathToFileURL(join(import.meta.dirname, '../../bench', path)).href);
