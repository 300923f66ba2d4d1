import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { withoutSlowness } from './run-modules.js';
import { startLimitMs } from './wait-for.js';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of test/e2e/programs, or the one at a path, in a child process, and waits until it exits. */
export const runProgram = async (
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  nodeArgs: readonly string[] = [],
): Promise<Ended> => {
  const path = resolve(import.meta.dirname, '../e2e/programs', name);
  const child = spawn(process.execPath, [...nodeArgs, path, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // No test needs a program to be faster than this.
    ...{ timeout: startLimitMs, killSignal: 'SIGKILL' },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => {
    child.on('close', (code, signal) =>
      resolve({ code, signal, stdout: withoutSlowness(stdout), stderr: withoutSlowness(stderr) }),
    );
  });
};
