import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { waitFor } from '../../support/wait-for.js';

/** The command. It loads the built program, so run `npm run build` first; `npm test` does. */
const main = new URL('../../../bin/rx-trade-feed.js', import.meta.url).pathname;
const built = new URL('../../../dist/cli/main.js', import.meta.url).pathname;

/** The built program in a separate process. */
export interface Program {
  readonly child: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  untilStdout(pattern: RegExp): Promise<RegExpExecArray>;
  untilStderr(pattern: RegExp): Promise<RegExpExecArray>;
  /** The exit code, or the signal that killed it, once its output is complete. */
  readonly exit: Promise<number | NodeJS.Signals | null>;
}

/** Longer than even a busy machine takes to start a program, in ms. */
const limitMs = 55_000;

const running = new Set<ChildProcessWithoutNullStreams>();

/** Starts the program with arguments and an environment without other settings of the feed. */
export const program = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Program =>
  shell([process.execPath, main, ...args], env);

/**
 * Starts a shell command in which `$FEED` is the program.
 *
 * Node's pipes are sockets, so bash would take itself for a remote login and run the user's ~/.bashrc, which can take a second.
 */
export const shellCommand = (command: string, env: Readonly<Record<string, string>> = {}): Program =>
  shell(['bash', '--norc', '-c', command], { ...env, FEED: `${process.execPath} ${main}` });

/** Kills all programs that are still running. */
export const endPrograms = async (): Promise<void> => {
  await Promise.all(
    [...running].map(
      (child) =>
        new Promise((ended) => {
          child.once('close', ended);
          child.kill('SIGKILL');
        }),
    ),
  );
};

const shell = ([file = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Program => {
  if (!existsSync(built)) throw new Error(`${built} is not there: npm run build`);
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(file, args, { env: { PATH, HOME, ...env } });
  running.add(child);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin.on('error', () => undefined);
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    untilStdout: (pattern) => waitFor(() => pattern.exec(stdout), { limitMs, what: () => `${pattern} in: ${stdout}` }),
    untilStderr: (pattern) => waitFor(() => pattern.exec(stderr), { limitMs, what: () => `${pattern} in: ${stderr}` }),
    exit: new Promise((ended) => {
      child.once('close', (code, signal) => {
        running.delete(child);
        ended(signal ?? code);
      });
    }),
  };
};
