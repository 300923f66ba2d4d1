import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/**
 * Bundles a program of this folder, and imports it.
 *
 * @param {string} file - its name
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [mutant] - a change of one source file
 */
export const bundled = async (file, mutant) => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    write: false,
    logLevel: 'error',
    plugins: mutant === undefined ? [] : [patch(mutant)],
  });
  const [{ text }] = outputFiles;
  return import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
};

const patch = ({ file, find, replacement }) => ({
  name: 'patch',
  setup: ({ onLoad }) =>
    onLoad({ filter: new RegExp(`src/cluster/${file.replaceAll('.', '\\.')}$`) }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const parts = source.split(find);
      if (parts.length !== 2) throw new Error(`${file} contains ${parts.length - 1} times: ${find}`);
      return { contents: parts.join(replacement), loader: 'ts' };
    }),
});
