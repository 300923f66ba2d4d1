import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface Sums {
  readonly runs: number;
  readonly bad: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly states: Readonly<Record<string, number>>;
  readonly timelines: readonly string[];
}

/** A rule that is broken on purpose, and what a run has found. */
export interface Detected {
  readonly name: string;
  readonly violations: readonly string[];
}

type Room = 'cluster' | 'continuity' | 'log' | 'relay' | 'settle';

const program = fileURLToPath(new URL('run-simulation.mjs', import.meta.url));

const run = async (...args: readonly string[]): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    ...{ maxBuffer: 2 ** 24, timeout: 240_000 },
  });
  return JSON.parse(stdout) as unknown;
};

/** Runs seeds of a simulation in a separate process, where no coverage slows it down. */
export const runSeeds = async (room: Room, from: number, count: number): Promise<Sums> =>
  (await run(room, 'seeds', `${from}`, `${count}`)) as Sums;

/** Runs a simulation with each broken rule in such a process. */
export const runMutants = async (room: Room): Promise<readonly Detected[]> =>
  (await run(room, 'mutants')) as readonly Detected[];
