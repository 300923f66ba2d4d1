import { spawn } from 'node:child_process';
import { resolve } from 'node:path';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program in a child process and waits until it exits.
 *
 * @param name - a program of test/e2e/programs, which uses the built package, or the path of a program
 */
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
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, stdout: fast(stdout), stderr: fast(stderr) }));
  });
};

/** Removes the warning that an attempt takes some seconds, which happens on a busy machine. */
const fast = (output: string): string =>
  output.replace(/^.*No connection to \S+ has opened after \d+ s of .*\n(\(Use `node --trace-warnings .*\n)?/gm, '');
