import { buildSync } from 'esbuild';
import { renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

// Stands in for src/worker/start-worker.ts (see jest.config.mjs): a worker thread runs JavaScript alone, and the sources are none.
const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const file = pathOf(`temp/feed-worker-${process.env['JEST_WORKER_ID']}.cjs`);
let isBuilt = false;

const build = (): void => {
  const { outputFiles } = buildSync({
    entryPoints: [pathOf('src/worker/inside/feed-worker.ts')],
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    write: false,
    logLevel: 'error',
  });
  // In one step: another run of the tests may be at the same.
  writeFileSync(`${file}.${process.pid}`, (outputFiles[0] as { readonly contents: Uint8Array }).contents);
  renameSync(`${file}.${process.pid}`, file);
  isBuilt = true;
};

/** The workers that were started, and what is run instead of the library's file, for a test that wants it to go wrong. */
export const workers: { readonly started: Worker[]; instead: string | undefined } = { started: [], instead: undefined };

export const startWorker = (options: WorkerOptions): Worker => {
  if (!isBuilt) build();
  const worker = new Worker(workers.instead ?? file, options);
  workers.started.push(worker);
  return worker;
};
