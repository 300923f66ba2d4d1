import { buildSync } from 'esbuild';
import { builtinModules } from 'node:module';
import { readdirSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker, type WorkerOptions } from 'node:worker_threads';

// Replaces src/worker/start-worker.ts (see jest.config.mjs): bundles the TypeScript, because a thread needs JavaScript.
const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const file = pathOf('temp/feed-worker.cjs');

const changedAt = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Whether no source, package or setting has changed since the last build. A removed file changes its folder. */
const isUpToDate = (): boolean => {
  const src = pathOf('src');
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' }).map((name) => join(src, name));
  const builtAt = changedAt(file);
  return [src, ...sources, pathOf('package-lock.json'), import.meta.filename].every(
    (path) => changedAt(path) < builtAt,
  );
};

const build = (): void => {
  const begun = new Date();
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
  // A source that changes during the build is newer.
  utimesSync(`${file}.${process.pid}`, begun, begun);
  renameSync(`${file}.${process.pid}`, file);
};

let isBuilt = false;

/** The workers started so far, and a file to run instead of the library's, for tests of failures. */
export const workers: { readonly started: Worker[]; instead: string | undefined } = { started: [], instead: undefined };

export const startWorker = (options: WorkerOptions): Worker => {
  if (!isBuilt && !isUpToDate()) build();
  isBuilt = true;
  const worker = new Worker(workers.instead ?? file, options);
  workers.started.push(worker);
  return worker;
};
