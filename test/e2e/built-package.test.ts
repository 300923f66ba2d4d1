import { describe, expect, it } from '@jest/globals';
import { build, type BuildOptions } from 'esbuild';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runProgram } from '../support/run-program.js';

const dist = resolve(import.meta.dirname, '../../dist');
const worker = join('worker', 'inside', 'feed-worker.js');

/** The names of the built JavaScript files, with their code. */
const builtFiles = async (): Promise<readonly (readonly [string, string])[]> => {
  const names = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.js'));
  return Promise.all(names.map(async (name) => [name, await readFile(join(dist, name), 'utf8')] as const));
};

const printedBy = async (program: string, args: readonly string[] = []): Promise<unknown> => {
  const { code, stdout, stderr } = await runProgram(program, args, {});
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};

/** Bundles the browser entry as an app does. Returns the gzipped size of each file that a page loads at its start. */
const pageFiles = async (options: BuildOptions): Promise<readonly number[]> => {
  const { outputFiles, metafile } = await build({
    ...options,
    ...{ entryPoints: [join(dist, 'browser/index.js')], outdir: 'page' },
    ...{ bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
    ...{ write: false, metafile: true },
  });
  const importsOf = (file: string): string[] =>
    metafile.outputs[file]!.imports.flatMap(({ path, kind, external }) =>
      kind === 'import-statement' && external !== true ? [path, ...importsOf(path)] : [],
    );
  const isEntry = (file: string) => metafile.outputs[file]!.entryPoint?.endsWith('browser/index.js');
  const atStart = new Set(
    Object.keys(metafile.outputs)
      .filter(isEntry)
      .flatMap((file) => [file, ...importsOf(file)])
      .map((file) => resolve(file)),
  );
  return outputFiles
    .filter(({ path }) => atStart.has(path))
    .map(({ contents }) => gzipSync(contents, { level: 9 }).length);
};

describe('the built package', () => {
  it('has one class for each name, in all entry points, in a worker and in the command', async () => {
    const { classes, ...others } = (await printedBy('one-class.mjs')) as { classes: readonly string[] };
    expect(others).toMatchObject({
      shared: expect.arrayContaining(['Frame', 'TradeFeedError']),
      different: [],
      frame: true,
      failure: ['not-entitled', true],
    });
    expect(classes).toEqual(expect.arrayContaining(['DecodeError', 'Frame', 'RecordingError', 'TradeFeedError']));
    // The worker is bundled alone. The checks above show that its values have the classes of the entry points.
    const files = (await builtFiles()).filter(([name]) => name !== worker);
    const declaration = (name: string) => new RegExp(`(?:^|[;},])(?:class ${name}\\b|(?:var )?${name}=class\\b)`, 'm');
    const declaredIn = (name: string) => files.filter(([, code]) => declaration(name).test(code));
    expect(classes.filter((name) => declaredIn(name).length !== 1)).toEqual([]);
  }, 60_000);

  it.each([
    ['rx-trade-feed/operators', ['rxjs']],
    ['rx-trade-feed/browser', ['rxjs']],
    ['rx-trade-feed/relay', ['rxjs']],
    ['rx-trade-feed/otel', ['rxjs']],
    ['rx-trade-feed/testing', ['rxjs', 'ws']],
    ['rx-trade-feed', ['fp-ts', 'io-ts', 'rxjs']],
  ])(
    '%s loads only %j',
    async (entry, packages) => {
      expect(await printedBy('loaded-packages.mjs', [entry])).toEqual(packages);
    },
    60_000,
  );

  it('has a worker in one file, which imports only Node, and ws and undici when it connects', async () => {
    const code = await readFile(join(dist, worker), 'utf8');
    const imported = [...code.matchAll(/\bfrom ?"([^"]+)"/g)].map(([, path]) => path);
    expect(imported.filter((path) => !path?.startsWith('node:'))).toEqual([]);
    expect([...code.matchAll(/\bimport\("([^"]+)"\)/g)].map(([, path]) => path).sort()).toEqual(['undici', 'ws', 'ws']);
    expect(await readFile(join(dist, worker, '../rxjs-license.txt'), 'utf8')).toContain('Apache License');
  });

  it('has a separate file for shared tabs, which only pages with that option load', async () => {
    const files = await builtFiles();
    const loading = files.filter(([, code]) => /\bimport\("[^"]*\/shared-feed\.js"\)/.test(code));
    const importing = files.filter(([, code]) => /\bfrom ?"[^"]*\/shared-feed\.js"/.test(code));
    expect(loading).toHaveLength(1);
    expect(importing).toEqual([]);
  });

  it('is small in a page without shared tabs: in one file, and in the files of a bundler that splits', async () => {
    const rxjs = ['rxjs', 'rxjs/*'];
    const [oneFile, ...others] = await pageFiles({ external: [...rxjs, '*/shared-feed.js'] });
    expect(others).toEqual([]);
    expect(oneFile).toBeLessThan(6_000);
    const split = await pageFiles({ external: rxjs, splitting: true });
    expect(split).toHaveLength(2);
    expect(split.reduce((sum, bytes) => sum + bytes)).toBeLessThan(7_000);
  });
});
