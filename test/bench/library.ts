import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A ratio of pairs in a result. */
export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

type Sample = Readonly<Record<string, number>>;

/** The functions of `bench/lib` that compute figures. */
export interface BenchLibrary {
  readonly median: (values: readonly number[]) => number;
  readonly pairedRatio: (
    over: readonly Sample[],
    under: readonly Sample[],
    key: string | ((sample: Sample) => number),
  ) => Ratio;
  readonly sample: (file: string, args?: readonly string[]) => Promise<unknown>;
}

/** Imports a JavaScript module of `bench/`. */
export const benchModule = async (path: string): Promise<unknown> =>
  import(pathToFileURL(join(import.meta.dirname, '../../bench', path)).href);

/** Imports `bench/lib/bench.mjs`. */
export const benchLibrary = async (): Promise<BenchLibrary> => (await benchModule('lib/bench.mjs')) as BenchLibrary;
