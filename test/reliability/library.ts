import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Loads a file of `reliability/`, which is JavaScript. */
export const reliabilityModule = async <M>(path: string): Promise<M> =>
  (await import(pathToFileURL(join(import.meta.dirname, '../../reliability', path)).href)) as M;

/** A row of a report. */
export interface Goal {
  readonly what: string;
  readonly wanted: string;
  readonly measured: number | string;
  readonly met: boolean;
}
