import { build } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const resolveDir = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * Bundles a program from the sources and runs it in a separate process.
 *
 * @param flags - options of Node
 * @returns the printed JSON
 * @throws Error if the process fails, for example with an unhandled rejection
 */
export const runBundled = async (program: string, flags: readonly string[] = []): Promise<unknown> => {
  const { outputFiles } = await build({
    ...{ stdin: { contents: program, resolveDir, loader: 'ts' }, bundle: true, write: false },
    ...{ platform: 'node', format: 'cjs' },
  });
  const printed = execFileSync(process.execPath, [...flags, '-'], {
    ...{ input: outputFiles[0]!.text, encoding: 'utf8', maxBuffer: 1 << 24 },
  });
  return JSON.parse(printed);
};
