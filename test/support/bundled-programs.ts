import { afterAll, beforeAll } from '@jest/globals';
import { build } from 'esbuild';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Bundles programs with the sources they use before the tests of a file, and removes the bundles afterwards. A bundle starts in a fraction of the time
 * that importing the package takes. Returns a function that returns a bundle's path for the name of its program.
 */
export const bundledPrograms = (folder: string, names: readonly string[]): ((name: string) => string) => {
  let bundles = '';
  beforeAll(async () => {
    await mkdir(join(root, 'temp'), { recursive: true });
    // Inside the project, so that the native package can load.
    bundles = await mkdtemp(join(root, 'temp/programs-'));
    await build({
      entryPoints: names.map((name) => join(root, folder, name)),
      outdir: bundles,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      // Resolves the package's names to the sources, like tsconfig.json.
      tsconfig: join(root, 'tsconfig.json'),
      // Nest loads the others if an app has them.
      external: ['fs-native-extensions', 'class-validator', 'class-transformer'],
      // CommonJS packages need it.
      banner: { js: `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);` },
      minifyWhitespace: true,
      minifySyntax: true,
      logLevel: 'error',
    });
  });
  afterAll(() => rm(bundles, { recursive: true, force: true }));
  return (name) => join(bundles, basename(name));
};
