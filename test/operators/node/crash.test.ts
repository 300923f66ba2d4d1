import { expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { of } from 'rxjs';
import { recordTo } from '../../../src/index.js';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { bundledPrograms } from '../../support/bundled-programs.js';
import { frameAt, replayed } from './support/recorded.js';
import { waitFor } from '../../support/wait-for.js';

const folder = tempFolder();
const program = bundledPrograms('test/operators/node/programs', [
  'record-forever.mjs',
  'record-together.mjs',
  'record-and-end.mjs',
]);

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Records in a separate process and kills it when a file has a number of bytes. */
const recordAndKill = async (args: readonly string[], file: string, bytes: number): Promise<void> => {
  const child = spawn(process.execPath, [program('record-forever.mjs'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exit = once(child, 'exit');
  await waitFor(() => sizeOf(file) >= bytes, { limitMs: 30_000 });
  child.kill('SIGKILL');
  expect(await exit).toEqual([null, 'SIGKILL']);
};

const numbersOf = async (path: string): Promise<(number | 'gap')[]> =>
  (await replayed(path)).map((event) => (event.type === 'gap' ? 'gap' : (event.json() as { number: number }).number));

const upFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, n) => first + n);

it('a kill while recording tears at most the last line, and the next recording continues after it', async () => {
  const path = folder.path('feed.ndjson');
  await recordAndKill([path], path, 500_000);
  const bytes = readFileSync(path);
  const numbers = await numbersOf(path);
  expect(numbers.length).toBeGreaterThan(500);
  // The numbers begin at the first one, have no hole, and match all lines of the file.
  expect(numbers).toEqual(upFrom(0, numbers.length));
  expect(numbers).toHaveLength(bytes.toString().split('\n').length - 1);

  of(frameAt(Date.now(), '{"number":-1}')).pipe(recordTo(path)).subscribe();
  expect(await numbersOf(path)).toEqual([...numbers, 'gap', -1]);
}, 120_000);

it('only one process can record to a path, and another one can after a kill', async () => {
  const path = folder.path('claimed.ndjson');
  const child = spawn(process.execPath, [program('record-forever.mjs'), path], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exit = once(child, 'exit');
  await waitFor(() => sizeOf(path) > 0, { limitMs: 30_000 });
  const refused: unknown[] = [];
  of(frameAt(1))
    .pipe(recordTo(path))
    .subscribe({ error: (error) => refused.push(error) });
  expect(refused).toMatchObject([{ name: 'RecordingError', message: expect.stringContaining('another recorder') }]);
  child.kill('SIGKILL');
  await exit;
  const numbers = await numbersOf(path);
  expect(numbers).toEqual(upFrom(0, numbers.length));
  of(frameAt(Date.now(), '{"number":-1}')).pipe(recordTo(path)).subscribe();
  expect(await numbersOf(path)).toEqual([...numbers, 'gap', -1]);
}, 120_000);

it('of several processes that start one recording at the same time, one records and the others are refused', async () => {
  const path = folder.path('raced.ndjson');
  const children = [1, 2, 3, 4].map((number) => {
    const child = spawn(process.execPath, [program('record-together.mjs'), path, String(number)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]();
    const next = async () => String((await lines.next()).value);
    return { child, next };
  });
  await Promise.all(children.map(({ next }) => next()));
  for (const { child } of children) child.stdin.write('now');
  const said = await Promise.all(children.map(({ next }) => next()));
  const closed = children.map(({ child }) => once(child, 'close'));
  for (const { child } of children) child.stdin.end();
  await Promise.all(closed);
  expect(said.filter((words) => words.includes('another recorder'))).toHaveLength(3);
  const [winner] = said.filter((words) => /^\d+$/.test(words));
  expect(await numbersOf(path)).toEqual(Array.from({ length: 100 }, () => Number(winner)));
}, 120_000);

it('a program that exits or throws has recorded all frames', async () => {
  for (const how of ['exit', 'throw']) {
    const path = folder.path(`${how}.ndjson`);
    spawnSync(process.execPath, [program('record-and-end.mjs'), path, how], { stdio: 'ignore' });
    expect(await numbersOf(path)).toEqual(upFrom(0, 100));
  }
}, 120_000);
