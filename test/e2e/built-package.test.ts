import { describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { runProgram } from '../support/run-program.js';

const dist = resolve(import.meta.dirname, '../../dist');

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
    const files = await builtFiles();
    const declaredIn = (name: string) => files.filter(([, code]) => new RegExp(`^class ${name}\\b`, 'm').test(code));
    expect(classes.filter((name) => declaredIn(name).length !== 1)).toEqual([]);
  }, 60_000);

  it.each([
    ['rx-trade-feed/operators', ['rxjs']],
    ['rx-trade-feed/browser', ['rxjs']],
    ['rx-trade-feed/relay', ['rxjs']],
    ['rx-trade-feed/testing', ['rxjs', 'ws']],
    ['rx-trade-feed', ['fp-ts', 'io-ts', 'rxjs']],
  ])('%s loads only %j', async (entry, packages) => {
    expect(await printedBy('loaded-packages.mjs', [entry])).toEqual(packages);
  }, 60_000);

  it('has a separate file for shared tabs, which only pages with that option load', async () => {
    const files = await builtFiles();
    const loading = files.filter(([, code]) => /\bimport\("[^"]*\/shared-feed\.js"\)/.test(code));
    const importing = files.filter(([, code]) => /\bfrom "[^"]*\/shared-feed\.js"/.test(code));
    expect(loading).toHaveLength(1);
    expect(importing).toEqual([]);
  });
});
