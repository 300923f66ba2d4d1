import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of test/e2e/programs with the built package in a child process, and waits until it exits. */
export const runProgram = async (
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  nodeArgs: readonly string[] = [],
): Promise<Ended> => {
  const path = fileURLToPath(new URL(`../e2e/programs/${name}`, import.meta.url));
  const child = spawn(process.execPath, [...nodeArgs, path, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })));
};
