import { beforeEach, describe, expect, it } from '@jest/globals';
import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { inspectLog, verifyLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { path as pathOf, read as readAll, short, write } from './support.js';

const path = (name = 'x.ndjson') => pathOf(name);
const line = (n: number) =>
  `{"type":"frame","feed":"market","connection":1,"receivedAt":${1_000 + n},"isBinary":false,"encoding":"utf8","data":"${n}"}\n`;
const lines = (...numbers: readonly number[]) => numbers.map(line).join('');
const frame = (n: number) => new Frame('market', Buffer.from(`${n}`), false, 1_000 + n, 1);
const read = async (name: string, options = {}) => short(await readAll(options, path(name)));

describe('a file as a log', () => {
  it("uses line numbers as offsets, and skips what it doesn't know", async () => {
    writeFileSync(path(), `{"type":"ticket-requested","at":1}\n${line(1)}\n{"type":"new"}\n${line(2)}{"type":"fr`);
    expect(await read('x.ndjson')).toEqual(['0:ticket-requested', '1:1', '4:2']);
    expect(await read('x.ndjson', { from: { offset: 2 } })).toContain('4:2');
    writeFileSync(path(), '{"type":"new"}\n');
    expect(await verifyLog(path())).toMatchObject({ records: 0, damaged: [] });
  });

  it('can be read compressed', async () => {
    writeFileSync(path('x.ndjson.gz'), gzipSync(lines(1, 2)));
    expect(await read('x.ndjson.gz')).toEqual(['0:1', '1:2']);
    expect(await verifyLog(path('x.ndjson.gz'))).toMatchObject({ records: 2, damaged: [] });
  });

  it('reports a damaged line where it is', async () => {
    writeFileSync(path(), `${line(1)}{"type":"frame"}\n${line(3)}`);
    expect(await read('x.ndjson')).toEqual(['0:1', '-:gap log-damaged', '2:3']);
    await expect(read('x.ndjson', { onDamage: 'error' })).rejects.toMatchObject({
      code: 'log-corrupt',
      path: path(),
      lineAt: line(1).length,
    });
    expect((await verifyLog(path())).damaged).toEqual([
      { path: path(), line: 2, lineAt: line(1).length, problem: "it isn't a record" },
    ]);
  });

  it.each(['text\n', '{"a":1}\n', '\u0000'.repeat(300_000)])('refuses a file in another format', async (text) => {
    writeFileSync(path(), text);
    await expect(read('x.ndjson')).rejects.toMatchObject({ code: 'log-corrupt', path: path() });
  });

  it('is reported if it is missing', async () => {
    await expect(read('missing')).rejects.toMatchObject({ code: 'log-missing', path: path('missing') });
    await expect(inspectLog(path('missing'))).rejects.toMatchObject({ code: 'log-missing' });
  });

  it('is never written to', async () => {
    writeFileSync(path(), lines(1));
    await expect(write([frame(2)], {}, path())).rejects.toMatchObject({ code: 'log-write-failed' });
    expect(readFileSync(path(), 'utf8')).toBe(lines(1));
  });
});

describe('a damaged line', () => {
  const ofLog = (...damaged: readonly number[]) => {
    const file = path('market/0000000000000000.ndjson');
    const all = readFileSync(file, 'utf8').split('\n');
    for (const offset of damaged) all[offset + 1] = 'damaged';
    writeFileSync(file, all.join('\n'));
    return path('market');
  };
  const ofFile = (...damaged: readonly number[]) => {
    writeFileSync(path(), [0, 1, 2, 3, 4].map((n) => (damaged.includes(n) ? 'damaged\n' : line(n))).join(''));
    return path();
  };
  const shown = async (target: string, options = {}) =>
    (await readAll(options, target)).flatMap((record) => {
      if (record.type === 'frame') return `${record.text()} to ${record.position.offset}`;
      if (record.type !== 'gap') return [];
      // How many frames are before it is not known any more.
      expect([record.failure.code, record.position?.frames]).toEqual(['log-damaged', NaN]);
      return `gap to ${record.position?.offset}`;
    });
  beforeEach(async () => {
    await write([0, 1, 2, 3, 4].map(frame));
  });

  it.each([ofLog, ofFile])('has a gap with the place after it, where a reader goes on: %p', async (damage) => {
    const target = damage(1, 2);
    expect(await shown(target)).toEqual(['0 to 1', 'gap to 3', '3 to 4', '4 to 5']);
    expect(await shown(target, { from: { offset: 3 } })).toEqual(['3 to 4', '4 to 5']);
  });

  it.each([ofLog, ofFile])('has a gap for a reader that begins at it, or before it in time: %p', async (damage) => {
    const target = damage(1, 2);
    for (const place of [{ offset: 1 }, { offset: 2 }, { time: 1_002 }])
      expect(await shown(target, { from: place })).toEqual(['gap to 3', '3 to 4', '4 to 5']);
  });

  it('has a gap also at the end and at the beginning', async () => {
    for (const damage of [ofFile, ofLog])
      expect(await shown(damage(4))).toEqual(['0 to 1', '1 to 2', '2 to 3', '3 to 4', 'gap to 5']);
    expect(await shown(ofLog(0))).toEqual(['gap to 1', '1 to 2', '2 to 3', '3 to 4', 'gap to 5']);
  });
});
