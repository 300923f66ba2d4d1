import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { Subject } from 'rxjs';
import { startLimitMs, waitFor } from '../../support/wait-for.js';

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
  const stdout = outputOf(child.stdout);
  const stderr = outputOf(child.stderr);
  child.stdin.on('error', () => undefined);
  return {
    child,
    ...{ stdout: stdout.text, stderr: stderr.text },
    ...{ untilStdout: stdout.until, untilStderr: stderr.until },
    exit: new Promise((ended) => {
      child.once('close', (code, signal) => {
        running.delete(child);
        ended(signal ?? code);
      });
    }),
  };
};

/** Stores the text of a stream. */
const outputOf = (stream: Readable) => {
  const changes = new Subject<void>();
  let all = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    all += text;
    changes.next();
  });
  stream.once('close', () => changes.complete());
  return {
    text: () => all,
    until: (pattern: RegExp) =>
      waitFor(() => pattern.exec(all), { on: changes, limitMs: startLimitMs, what: () => `${pattern} in: ${all}` }),
  };
};
