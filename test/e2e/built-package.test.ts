/**
 * @lane processes
 * @ci
 */
import { describe, expect, it, jest } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { runProgram } from '../support/run-program.js';
import { startTestLimitMs } from '../support/wait-for.js';

const dist = resolve(import.meta.dirname, '../../dist');
const worker = join('worker', 'inside', 'feed-worker.js');

/** The built JavaScript files by name, with their code. */
const builtFiles = async (): Promise<readonly (readonly [string, string])[]> => {
  const names = (await readdir(dist, { recursive: true })).filter((name) => name.endsWith('.js'));
  return Promise.all(names.map(async (name) => [name, await readFile(join(dist, name), 'utf8')] as const));
};

const printedBy = async (program: string, args: readonly string[] = []): Promise<unknown> => {
  const { code, stdout, stderr } = await runProgram(program, args, {});
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};

jest.setTimeout(startTestLimitMs);

describe('the built package', () => {
  it('has a single class for each name in all entry points, a worker and the command', async () => {
    const { classes, ...others } = (await printedBy('one-class.mjs')) as { classes: readonly string[] };
    expect(others).toMatchObject({
      shared: expect.arrayContaining(['Frame', 'TradeFeedError']),
      different: [],
      renamed: [],
      frame: true,
      failure: ['not-entitled', true],
    });
    expect(classes).toEqual(expect.arrayContaining(['DecodeError', 'Frame', 'LogError', 'TradeFeedError']));
    // The worker is a separate bundle. The checks above prove that its values have the entry points' classes.
    const files = (await builtFiles()).filter(([name]) => name !== worker);
    const declaration = (name: string) =>
      new RegExp(`(?:^|[;},])\\s*(?:class ${name}\\b|(?:var )?${name}\\s*=\\s*class\\b)`, 'm');
    const declaredIn = (name: string) => files.filter(([, code]) => declaration(name).test(code));
    expect(classes.filter((name) => declaredIn(name).length !== 1)).toEqual([]);
  });

  it.each([
    [['operators', 'relay', 'otel', 'interop', 'log', 'settle', 'testing'], ['rxjs']],
    [['browser'], ['eventsource-parser', 'rxjs']],
    [['index'], ['fp-ts', 'io-ts', 'rxjs']],
  ])('loads for %j only %j', async (entries, packages) => {
    const names = entries.map((entry) => (entry === 'index' ? 'rx-trade-feed' : `rx-trade-feed/${entry}`));
    expect(await printedBy('loaded-packages.mjs', names)).toEqual(packages);
  });

  it('imports what pages and their tests use without a single global, and needs a codec only for a frame', async () => {
    const names = ['browser', 'operators', 'testing', 'angular', 'interop', 'settle'].map(
      (name) => `rx-trade-feed/${name}`,
    );
    const texts = Object.fromEntries(names.map((name) => [name, name.endsWith('/browser') ? 'AB' : true]));
    expect(await printedBy('without-globals.mjs', names)).toEqual(texts);
  });

  it('shows the caller and the names of its own functions in the stack of an invalid option', async () => {
    const { code, stdout, stderr } = await runProgram('wrong-option.mjs', [], {});
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('Invalid option: `idleTimeoutMs` must be a number of ms, 0 or more, got -1.');
    const positions = [...stderr.matchAll(/^ +at (?:async )?(?:(\S+) )?\(?file:\/\/(\S+):(\d+):(\d+)\)?$/gm)];
    const inDist = positions.filter(([, , file]) => file!.startsWith(dist));
    expect(inDist.map(([, name]) => name)).toEqual(
      expect.arrayContaining(['validated', 'resolveTicketOptions', 'tradeFeed$']),
    );
    for (const [, , , , column] of inDist) expect(Number(column)).toBeLessThan(500);
    expect(positions.map(([, name, file, line]) => [name, file!.split('/').at(-1), line])).toContainEqual([
      'ownFunction',
      'wrong-option.mjs',
      '5',
    ]);
  });

  it('has a worker in one file that imports only Node, plus ws and undici once it connects', async () => {
    const code = await readFile(join(dist, worker), 'utf8');
    const imported = [...code.matchAll(/\bfrom ?"([^"]+)"/g)].map(([, path]) => path);
    expect(imported.filter((path) => !path?.startsWith('node:'))).toEqual([]);
    expect([...code.matchAll(/\bimport\("([^"]+)"\)/g)].map(([, path]) => path).sort()).toEqual(['undici', 'ws', 'ws']);
    expect(await readFile(join(dist, worker, '../rxjs-license.txt'), 'utf8')).toContain('Apache License');
  });
});
