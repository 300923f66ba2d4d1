import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A ratio of pairs, as the benches write it down. */
export interface Ratio {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly rounds: number;
}

type Sample = Readonly<Record<string, number>>;

/** What a goal says of itself. */
export interface Goal extends Ratio {
  readonly met: boolean;
  readonly missedBy: number;
}

/** The part of `bench/lib` that decides what a figure says. */
export interface BenchLibrary {
  readonly median: (values: readonly number[]) => number;
  readonly pairedRatio: (
    over: readonly Sample[],
    under: readonly Sample[],
    key: string | ((sample: Sample) => number),
  ) => Ratio;
  readonly goal: (row: {
    readonly id: string;
    readonly what: string;
    readonly ratio: Ratio | number;
    readonly atLeast?: number;
    readonly atMost?: number;
  }) => Goal;
  readonly interleaved: (run: {
    readonly contenders: Readonly<Record<string, () => Promise<Sample>>>;
    readonly rounds: number;
    readonly title: string;
  }) => Promise<Readonly<Record<string, readonly Sample[]>>>;
  readonly sample: (
    file: string,
    args?: readonly string[],
    options?: { nodeArgs?: readonly string[] },
  ) => Promise<unknown>;
}

/** Loads a file of `bench/`, which is JavaScript. */
export const benchModule = async (path: string): Promise<unknown> =>
  import(pathToFileURL(join(import.meta.dirname, '../../bench', path)).href);

/** Loads `bench/lib/bench.mjs`. */
export const benchLibrary = async (): Promise<BenchLibrary> => (await benchModule('lib/bench.mjs')) as BenchLibrary;
