import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/**
 * Bundles a TypeScript program, and imports it.
 *
 * @param {URL} program
 * @param {object} [changes]
 * @param {{ readonly file: string, readonly find: string, readonly replacement: string }} [changes.mutant] - a change of one source file; `file` is its
 *   path in `src/`
 * @param {Readonly<Record<string, URL>>} [changes.replaced] - source files by their path in `src/`, and the file that replaces each
 */
export const bundled = async (program, { mutant, replaced = {} } = {}) => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(program)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    write: false,
    logLevel: 'error',
    plugins: [
      ...(mutant === undefined ? [] : [patch(mutant)]),
      ...Object.entries(replaced).map(([file, by]) => replace(file, by)),
    ],
  });
  const [{ text }] = outputFiles;
  return import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
};

const sourceFile = (file) => new RegExp(`/src/${file.replaceAll('.', '\\.')}$`);

const patch = ({ file, find, replacement }) => ({
  name: 'patch',
  setup: ({ onLoad }) =>
    onLoad({ filter: sourceFile(file) }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const parts = source.split(find);
      if (parts.length !== 2) throw new Error(`${file} contains ${parts.length - 1} times: ${find}`);
      return { contents: parts.join(replacement), loader: 'ts' };
    }),
});

const replace = (file, by) => ({
  name: 'replace',
  setup: ({ onLoad }) =>
    onLoad({ filter: sourceFile(file) }, () => ({
      contents: `export * from ${JSON.stringify(fileURLToPath(by))};`,
      loader: 'ts',
    })),
});
