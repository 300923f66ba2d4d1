import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { withoutSlowness } from '../support/run-modules.js';

/** The result of a program. */
export interface Run {
  /** The exit code; `null` if the program was killed. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The keys and tickets that the library used in that process. */
  readonly secrets: readonly string[];
}

/** The environment variables with the address and the key of a service. */
export type ServiceVariables = Readonly<Record<`TRADE_FEED_${string}`, string>>;

export const root = join(import.meta.dirname, '../..');
/** The URL of the module that writes secrets to the file that SECRETS_FILE names. */
export const spy = pathToFileURL(join(import.meta.dirname, 'secret-spy.mjs')).href;

/** Kills a program that hangs. No test needs a program to be faster than this. */
const limitMs = 100_000;

/**
 * Runs a program with the built package in a child process.
 *
 * @param args - the arguments of `node`
 * @param service - environment variables with a service's address and key; if missing, the program starts a service
 */
export const runExample = async (args: readonly string[], service: ServiceVariables = {}): Promise<Run> => {
  const folder = await mkdtemp(join(tmpdir(), 'example-'));
  const secretsFile = join(folder, 'secrets');
  await writeFile(secretsFile, '');
  const env = {
    PATH: process.env['PATH'],
    NO_COLOR: '1',
    NODE_OPTIONS: `--import=${spy}`,
    SECRETS_FILE: secretsFile,
    ...service,
  };
  const program = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    program[stream].setEncoding('utf8').on('data', (text: string) => (printed[stream] += text));
  }
  const timer = setTimeout(() => program.kill('SIGKILL'), limitMs);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    program.once('close', resolve).once('error', reject);
  });
  clearTimeout(timer);
  const secrets = await secretsIn(secretsFile);
  await rm(folder, { recursive: true });
  return { exitCode, stdout: printed.stdout, stderr: withoutSlowness(printed.stderr), secrets };
};

/** Returns the secrets in a file that the spy wrote. */
export const secretsIn = async (file: string): Promise<readonly string[]> => [
  ...new Set((await readFile(file, 'utf8')).split('\n').filter(Boolean)),
];
