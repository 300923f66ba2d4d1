import { buildSync } from 'esbuild';
import { builtinModules } from 'node:module';
import { renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

// Replaces src/worker/start-worker.ts (see jest.config.mjs): bundles the TypeScript, because a thread needs JavaScript.
const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const file = pathOf(`temp/feed-worker-${process.env['JEST_WORKER_ID']}.cjs`);
let isBuilt = false;

const build = (): void => {
  const { outputFiles } = buildSync({
    entryPoints: [pathOf('src/worker/inside/feed-worker.ts')],
    bundle: true,
    format: 'cjs',
    target: 'node20',
    // A smaller file starts faster. esbuild can drop what the worker doesn't use if RxJS comes as modules, but on the
    // platform `node` it would take the CommonJS files.
    platform: 'neutral',
    mainFields: ['main'],
    conditions: ['es2015'],
    external: [...builtinModules, 'node:*'],
    minifyWhitespace: true,
    minifySyntax: true,
    write: false,
    logLevel: 'error',
  });
  // Renames, which is atomic, because another run of the tests may write the same file.
  writeFileSync(`${file}.${process.pid}`, (outputFiles[0] as { readonly contents: Uint8Array }).contents);
  renameSync(`${file}.${process.pid}`, file);
  isBuilt = true;
};

/** The workers started so far, and a file to run instead of the library's, for tests of failures. */
export const workers: { readonly started: Worker[]; instead: string | undefined } = { started: [], instead: undefined };

export const startWorker = (options: WorkerOptions): Worker => {
  if (!isBuilt) build();
  const worker = new Worker(workers.instead ?? file, options);
  workers.started.push(worker);
  return worker;
};
