import { expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Loads this text as a CommonJS module. */
const load = async (text: string): Promise<{ default: unknown }> => {
  const folder = await mkdtemp(join(tmpdir(), 'jest-runtime-'));
  try {
    const file = join(folder, 'fixture.cjs');
    await writeFile(file, text);
    return (await import(file)) as { default: unknown };
  } finally {
    await rm(folder, { recursive: true });
  }
};

const failure = (text: string): Promise<Error> =>
  load(text).then(
    () => new Error('It loads.'),
    (error: unknown) => error as Error,
  );

it('loads a module whose last line is a comment', async () => {
  expect((await load(`module.exports = 5; // five`)).default).toBe(5);
});

it('passes the names of CommonJS to the module', async () => {
  const text = `module.exports = [exports === module.exports, __filename.startsWith(__dirname), require('node:path').sep];`;
  expect((await load(text)).default).toEqual([true, true, '/']);
});

it('runs a module as often as it is loaded, in the realm of the test file', async () => {
  const text = `module.exports = { list: [] };`;
  const [first, second] = [await load(text), await load(text)];
  expect(first.default).not.toBe(second.default);
  expect((first.default as { list: unknown }).list).toBeInstanceOf(Array);
});

it('loads a module with a dynamic import', async () => {
  const { default: load$ } = await load(`module.exports = () => import('node:path');`);
  await expect((load$ as () => Promise<{ sep: string }>)()).resolves.toMatchObject({ sep: '/' });
});

it.each([
  ['in the first line', `throw new Error('here');`, ':1:7'],
  ['in a later line', `\n  throw new Error('here');`, ':2:9'],
])('keeps the position of an error %s', async (_, text, position) => {
  expect((await failure(text)).stack).toContain(`fixture.cjs${position}`);
});

it('reports the file of a syntax error', async () => {
  const error = await failure(`const one = 1;\nconst = 2;`);
  expect(error.name).toBe('SyntaxError');
  expect(error.stack).toMatch(/fixture\.cjs:2/);
});
