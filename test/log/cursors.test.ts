import { describe, expect, it } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { firstValueFrom } from 'rxjs';
import { feedLog, inspectLog } from '../../src/log/index.js';
import { startOf } from '../../src/protocol/place.js';
import { done, frames, opened, path, write } from './support.js';

const cursor = (): string => path('market/cursors/db.json');
const consumed = (work = done) => firstValueFrom(feedLog(path()).consume$('db', work, { maxBatch: 5 }));
const stored = async (): Promise<void> => {
  await write([opened(), ...frames(0, 20)]);
  mkdirSync(path('market/cursors'), { recursive: true });
};

describe('a cursor that can not be read is an error, never a new consumer:', () => {
  it.each([
    ...[
      '',
      ' ',
      '\n',
      '\0\0\0\0',
      'null',
      '{}',
      '[]',
      '[5]',
      '5',
      '"5"',
      'true',
      '{"offset":5',
      '{"frames":5,"line":"a"}',
    ],
    ...['"5"', '-1', '1.5', 'null', '[5]', '{}', '1e300', 'true'].map((offset) => `{"offset":${offset},"line":"a"}`),
    ...['5', 'null', '[]', '{}'].map((line) => `{"offset":5,"line":${line}}`),
    ...[
      '"frames":"5"',
      '"frames":-1',
      '"holes":"0"',
      '"gen":-1',
      '"gen":null',
      '"complete":"x"',
      '"at":"x"',
      '"at":null',
      '"at":1e300',
    ].map((field) => `{"offset":5,"line":"a",${field}}`),
  ])('%j', async (text) => {
    await stored();
    writeFileSync(cursor(), text);
    const damaged = { code: 'log-corrupt', path: cursor() };
    await expect(consumed()).rejects.toMatchObject(damaged);
    await expect(feedLog(path()).committed('db')).rejects.toMatchObject(damaged);
    expect(readFileSync(cursor(), 'utf8')).toBe(text);
    writeFileSync(path('market/cursors/other.json'), '{"offset":3}');
    const { consumers, frames: stillCounted } = await inspectLog(path());
    expect(stillCounted).toBe(20);
    expect(consumers).toMatchObject([
      { name: 'db', position: undefined, problem: expect.stringContaining(`The cursor ${cursor()} is damaged.`) },
      { name: 'other', position: { offset: 3 }, behind: 18 },
    ]);
    expect(consumers[1]).not.toHaveProperty('problem');
  });
});

it('a cursor after damaged lines, whose number of frames is unknown, is read back as it was', async () => {
  await stored();
  const place = { ...startOf('a', 5, 9), gen: 2, frames: NaN, holes: 1 };
  writeFileSync(cursor(), JSON.stringify(place));
  expect(await feedLog(path()).committed('db')).toEqual(place);
  writeFileSync(cursor(), '{"offset":5}');
  expect(await feedLog(path()).committed('db')).toEqual({ ...startOf('', 5), frames: NaN, holes: NaN });
});

it('only a consumer without a cursor is a new one, and one that has never committed stays new', async () => {
  await stored();
  const failing = () => Promise.reject(new Error('work'));
  for (let n = 0; n < 2; n += 1) await expect(consumed(failing)).rejects.toThrow('work');
  expect(readdirSync(path('market/cursors'))).toEqual(['db.json']);
  expect(await feedLog(path()).committed('db')).toBeUndefined();
  expect((await inspectLog(path())).consumers).toEqual([{ name: 'db', position: undefined, behind: 21, behindMs: 0 }]);
  expect(await consumed()).toMatchObject({ committed: 5 });
  expect((await consumed()).committed).toBeGreaterThan(5);
  rmSync(cursor());
  expect(await feedLog(path()).committed('db')).toBeUndefined();
  expect(await consumed()).toMatchObject({ committed: 5 });
});
