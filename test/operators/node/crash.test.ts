import { expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { of } from 'rxjs';
import { recordTo } from '../../../src/index.js';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { frameAt, replayed } from './support/recorded.js';

const folder = tempFolder();
const program = new URL('programs/record-forever.mjs', import.meta.url).pathname;

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Records in a process of its own and kills that in full stream, as soon as a file has so many bytes. */
const recordAndKill = async (args: readonly string[], file: string, bytes: number): Promise<void> => {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const exit = once(child, 'exit');
  const deadline = performance.now() + 8_000;
  while (sizeOf(file) < bytes && performance.now() < deadline) await new Promise((done) => setTimeout(done, 2));
  child.kill('SIGKILL');
  expect(await exit).toEqual([null, 'SIGKILL']);
};

const numbersOf = async (path: string): Promise<(number | 'gap')[]> =>
  (await replayed(path)).map((event) => (event.type === 'gap' ? 'gap' : (event.json() as { number: number }).number));

const upFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, n) => first + n);

it('a recording survives a kill in full stream with at most its last line torn, and goes on behind it', async () => {
  const path = folder.path('feed.ndjson');
  await recordAndKill([path], path, 500_000);
  const bytes = readFileSync(path);
  const numbers = await numbersOf(path);
  expect(numbers.length).toBeGreaterThan(500);
  // From the first one without a hole, and all lines that the file holds.
  expect(numbers).toEqual(upFrom(0, numbers.length));
  expect(numbers).toHaveLength(bytes.toString().split('\n').length - 1);

  of(frameAt(Date.now(), '{"number":-1}')).pipe(recordTo(path)).subscribe();
  expect(await numbersOf(path)).toEqual([...numbers, 'gap', -1]);
}, 20_000);

it('a recording survives a kill between its files', async () => {
  const path = folder.path('rotated.ndjson');
  await recordAndKill([path, '0', '60000'], `${path}.7`, 1);
  const numbers = await numbersOf(path);
  expect(numbers).toEqual(upFrom(0, numbers.length));
  await recordAndKill([path, '0', '60000'], `${path}.12`, 1);
  const more = await numbersOf(path);
  expect(more.slice(0, numbers.length + 1)).toEqual([...numbers, 'gap']);
  expect(more.slice(numbers.length + 1)).toEqual(upFrom(0, more.length - numbers.length - 1));
}, 20_000);
