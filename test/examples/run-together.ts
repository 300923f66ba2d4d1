import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastValueFrom } from 'rxjs';
import { runModules, withoutSlowness } from '../support/run-modules.js';
import { root, type Run, secretsIn, type ServiceVariables, spy } from './run-example.js';

/** An example, with a service or with the local one that it starts. */
export interface Example {
  readonly name: string;
  readonly service?: ServiceVariables;
}

/** Runs examples in one process, each like a separate program. An example that leaks keeps the process running. */
export const runTogether = async (examples: readonly Example[]): Promise<readonly Run[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'examples-'));
  const modules = await Promise.all(
    examples.map(async ({ name, service }, index) => {
      const SECRETS_FILE = join(folder, `secrets-${index}`);
      await writeFile(SECRETS_FILE, '');
      // The query string makes each run a separate module.
      return { url: `${pathToFileURL(join(root, 'examples', name)).href}?${index}`, env: { SECRETS_FILE, ...service } };
    }),
  );
  const { outputs, exit } = runModules(modules, root, [`--import=${spy}`]);
  const printed = await Promise.all(outputs.map((output$) => lastValueFrom(output$)));
  const exitCode = await exit;
  const secrets = await Promise.all(modules.map(({ env }) => secretsIn(env.SECRETS_FILE)));
  await rm(folder, { recursive: true });
  return printed.map(({ stdout, stderr, hasEnded, hasFailed }, index) => ({
    stdout,
    stderr: withoutSlowness(stderr),
    exitCode: hasFailed ? 1 : hasEnded ? exitCode : null,
    secrets: secrets[index]!,
  }));
};
