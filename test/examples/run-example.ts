import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What a program did before it ended. */
export interface Run {
  /** The exit code; `null` when it had to be killed. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Each key and ticket that the library used in that process. */
  readonly secrets: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const spy = pathToFileURL(join(import.meta.dirname, 'secret-spy.mjs')).href;

/** A program that takes longer is killed, in ms: it was to end by itself. */
const patienceMs = 25_000;

/**
 * Runs a program of the project in a Node process of its own, on the built package, as a reader would.
 *
 * @param args - what stands behind `node`
 * @param service - the variables that point at a service; without them the program must do on its own
 */
export const runExample = async (
  args: readonly string[],
  service: Readonly<Record<`TRADE_FEED_${string}`, string>> = {},
): Promise<Run> => {
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
  const patience = setTimeout(() => program.kill('SIGKILL'), patienceMs);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    program.once('close', resolve).once('error', reject);
  });
  clearTimeout(patience);
  const secrets = (await readFile(secretsFile, 'utf8')).split('\n').filter(Boolean);
  await rm(folder, { recursive: true });
  return { exitCode, ...printed, secrets: [...new Set(secrets)] };
};
