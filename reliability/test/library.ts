import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Imports a JavaScript module of `reliability/`. */
export const reliabilityModule = async <M>(path: string): Promise<M> =>
  (await import(pathToFileURL(join(import.meta.dirname, '..', path)).href)) as M;

/** A rule of a report. */
export interface Goal {
  readonly what: string;
  readonly wanted: string;
  readonly measured: number | string;
  readonly met: boolean;
}
