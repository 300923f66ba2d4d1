import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Observable, ReplaySubject } from 'rxjs';
import { startLimitMs } from './wait-for.js';

export interface Module {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
}

/** What a module has printed so far. */
export interface ModuleOutput {
  readonly stdout: string;
  readonly stderr: string;
  /** Whether the module has been evaluated, including its top-level `await`. */
  readonly hasEnded: boolean;
  /** Whether it threw or set an exit code other than 0, or whether an error occurred that belongs to no module. */
  readonly hasFailed: boolean;
}

/** The warning that no attempt has succeeded for some seconds: on a busy machine, it says nothing about the program. */
export const slowMachine = /TradeFeedWarning.*: No connection to |^\(Use `node --trace-warnings /;

export const withoutSlowness = (output: string): string =>
  output
    .split('\n')
    .filter((line) => !slowMachine.test(line))
    .join('\n');

const host = new URL('module-host.mjs', import.meta.url).pathname;

interface Message extends Partial<ModuleOutput> {
  readonly index?: number;
  readonly stream?: 'stdout' | 'stderr';
  readonly text?: string;
}

/** Runs modules with the built package in one child process, each with its own environment variables and output. */
export const runModules = (modules: readonly Module[], cwd: string, nodeArgs: readonly string[] = []) => {
  // A late subscriber gets the last output, even after the process has ended.
  const outputs = modules.map(() => new ReplaySubject<ModuleOutput>(1));
  const latest = modules.map((): ModuleOutput => ({ stdout: '', stderr: '', hasEnded: false, hasFailed: false }));
  outputs.forEach((output, index) => output.next(latest[index]!));
  const child = spawn(process.execPath, [...nodeArgs, host, JSON.stringify(modules)], {
    cwd,
    env: { PATH: process.env['PATH'], NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // It hangs: no test needs a program to be faster than this.
  const timer = setTimeout(() => child.kill('SIGKILL'), startLimitMs);

  const add = ({ index, stream, text = '', ...ends }: Message): void => {
    for (const at of index === undefined ? outputs.keys() : [index]) {
      const value = latest[at]!;
      latest[at] = { ...value, ...(stream && { [stream]: value[stream] + text }), ...ends };
      outputs[at]!.next(latest[at]);
    }
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    // The last line of a process that was killed can be cut off.
    if (!child.killed) add(JSON.parse(line) as Message);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => add({ stream: 'stderr', text }));
  const exit = new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject));
  const ended = exit.finally(() => {
    clearTimeout(timer);
    for (const output of outputs) output.complete();
  });

  return {
    /** The output of each module. Completes when the process has ended. */
    outputs: outputs as readonly Observable<ModuleOutput>[],
    /** The exit code; `null` when the process was killed. */
    exit: ended,
    end: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
};
