import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastValueFrom } from 'rxjs';
import { runModules, withoutSlowness } from '../support/run-modules.js';
import { runProgram } from '../support/run-program.js';

/** An example, with the address and the key of a service, or with the local one that it starts. */
export interface Example {
  readonly name: string;
  readonly service?: Readonly<Record<`TRADE_FEED_${string}`, string>>;
}

export interface Run {
  /** The exit code; `null` if the program was killed. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The keys and tickets that the library used in that process. */
  readonly secrets: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const pathOf = (name: string): string => join(root, 'examples', name);
/** Makes a process write its secrets to the file that SECRETS_FILE names. */
const spy = `--import=${pathToFileURL(join(import.meta.dirname, 'secret-spy.mjs')).href}`;

/** Runs an example as a separate program, also a test with `nodeArgs`. */
export const runExample = async ({ name, service }: Example, nodeArgs: readonly string[] = []): Promise<Run> =>
  withSecrets(1, async ([file]) => {
    const env = { NO_COLOR: '1', NODE_OPTIONS: spy, SECRETS_FILE: file!, ...service };
    const { code, stdout, stderr } = await runProgram(pathOf(name), [], env, nodeArgs);
    return [{ exitCode: code, stdout, stderr }];
  }).then(([run]) => run!);

/** Runs examples in one process, each like a separate program. An example that leaks keeps the process running. */
export const runTogether = (examples: readonly Example[]): Promise<readonly Run[]> =>
  withSecrets(examples.length, async (files) => {
    const modules = examples.map(({ name, service }, index) => ({
      // The query string makes each run a separate module.
      url: `${pathToFileURL(pathOf(name)).href}?${index}`,
      env: { SECRETS_FILE: files[index]!, ...service },
    }));
    const { outputs, exit } = runModules(modules, root, [spy]);
    const printed = await Promise.all(outputs.map((output$) => lastValueFrom(output$)));
    const exitCode = await exit;
    return printed.map(({ stdout, stderr, hasEnded, hasFailed }) => ({
      stdout,
      stderr: withoutSlowness(stderr),
      exitCode: hasFailed ? 1 : hasEnded ? exitCode : null,
    }));
  });

/** Gives each of some runs a file for its secrets, and returns the runs with them. */
const withSecrets = async (
  count: number,
  run: (files: readonly string[]) => Promise<readonly Omit<Run, 'secrets'>[]>,
): Promise<readonly Run[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'examples-'));
  const files = Array.from({ length: count }, (_, index) => join(folder, `secrets-${index}`));
  await Promise.all(files.map((file) => writeFile(file, '')));
  const secretsIn = async (file: string) => [
    ...new Set((await readFile(file, 'utf8')).split('\n').filter((line) => line !== '')),
  ];
  const runs = await run(files);
  const secrets = await Promise.all(files.map(secretsIn));
  await rm(folder, { recursive: true });
  return runs.map((each, index) => ({ ...each, secrets: secrets[index]! }));
};
