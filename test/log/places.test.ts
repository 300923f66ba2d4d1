import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { basename } from 'node:path';
import { firstValueFrom, Subject } from 'rxjs';
import { feedLog, type FeedLogOptions, type LogError, type LogRecord } from '../../src/log/index.js';
import { waitFor } from '../support/wait-for.js';
import { append, cut, follow, frame, frames, gapsOf, opened, path, placesOf, read } from './support.js';
import { replace, segments, startWriter, textsOf, tip, write } from './support.js';

const newest = () => segments().at(-1)!;
/** The frames of a reader, and those that its gaps count. */
const counted = (records: readonly LogRecord[]) =>
  gapsOf(records).reduce((sum, { missed = NaN }) => sum + missed, textsOf(records).length);
/** A writer that has stored frames, and what its `onError` receives. */
const start = async (count = 50, options?: FeedLogOptions) => {
  const reported: LogError[] = [];
  const writer = startWriter(feedLog(path(), options), { onError: (error) => void reported.push(error) });
  writer.send(opened(), ...frames(0, count));
  await waitFor(async () => textsOf(await read()).length === count);
  return { ...writer, reported };
};

describe('a writer whose newest segment or folder is no longer in its place', () => {
  const remove = (place: string) => fs.rmSync(place, { recursive: true });

  it.each<[string, () => void]>([
    ['its segment is removed', () => remove(newest())],
    ['its segment is moved', () => fs.renameSync(newest(), path('elsewhere'))],
    [
      'its segment is removed, and another link of it remains',
      () => {
        fs.linkSync(newest(), path('link'));
        remove(newest());
      },
    ],
    ['its segment is replaced by a copy', () => replace(newest())],
    ['its segment is cut to nothing', () => cut(newest(), 0)],
    ['its segment is cut in the middle', () => cut(newest(), 0.5)],
    ['its folder is removed', () => remove(path())],
    ['its folder is moved', () => fs.renameSync(path(), path('elsewhere'))],
    [
      'its folder is removed and made again',
      () => {
        remove(path());
        fs.mkdirSync(path());
      },
    ],
  ])('says so at once, and goes on with the exact number of lost frames: %s', async (_how, act) => {
    const { send, errors, end, reported } = await start();
    const reader = follow(feedLog(path()));
    await waitFor(() => textsOf(reader.records).length === 50);
    const before = [...reader.records];
    act();
    await waitFor(() => reported.length > 0);
    send(...frames(50, 80));
    await waitFor(() => fs.existsSync(path()) && segments().length > 0);
    await waitFor(async () => gapsOf(await read()).some(({ failure }) => failure.code === 'log-write-failed'));
    await expect(append(feedLog(path()), [])).rejects.toMatchObject({ code: 'log-in-use' });
    send(...frames(80, 90));
    await waitFor(() => textsOf(reader.records).at(-1) === '{"n":89}');
    await end();
    reader.stop();
    const records = await read();
    expect([reported.map(({ code }) => code), errors]).toEqual([['log-write-failed'], []]);
    expect([counted(records), counted(reader.records)]).toEqual([90, 90]);
    expect(gapsOf(records)).toMatchObject([{ failure: { code: 'log-write-failed' } }]);
    // What a reader had received has its place for itself.
    const had = new Map(before.map((record) => [placesOf([record])[0], textsOf([record])[0]]));
    for (const record of records)
      if (record.type === 'frame' && had.has(placesOf([record])[0]))
        expect(had.get(placesOf([record])[0])).toBe(record.text());
    const places = placesOf(reader.records);
    expect(places).toEqual([...new Set(places)]);
  });

  it('finds it also when lines were written after it was cut', async () => {
    const { send, end, reported } = await start();
    // A look at it comes four times a second.
    await waitFor(() => tip().offset > 50);
    cut(newest(), 0);
    send(...frames(50, 120));
    await waitFor(() => reported.length > 0);
    await end();
    const records = await read();
    const [own] = gapsOf(records).filter(({ failure }) => failure.code === 'log-write-failed');
    expect(textsOf(records).length + (own?.missed ?? NaN)).toBe(120);
  });

  it('has the number in the log also if it ends before it has looked', async () => {
    const { send, end, reported } = await start();
    fs.rmSync(newest());
    send(...frames(50, 60));
    await end();
    expect(reported).toHaveLength(1);
    expect(counted(await read())).toBe(60);
  });

  it('ends its stream with the failure by default', async () => {
    const { send, errors } = startWriter(feedLog(path()));
    send(opened(), ...frames(0, 5));
    await waitFor(async () => textsOf(await read()).length === 5);
    fs.rmSync(newest());
    await waitFor(() => errors.length > 0);
    expect(errors).toMatchObject([{ code: 'log-write-failed', message: expect.stringContaining(basename(path())) }]);
  });

  it('takes another hard link of its segment for what it is: a copy that costs nothing', async () => {
    const { send, errors, end, reported } = await start(5);
    fs.linkSync(newest(), path('link'));
    send(...frames(5, 10));
    await waitFor(async () => textsOf(await read()).length === 10);
    await end();
    expect([reported, errors]).toEqual([[], []]);
  });
});

describe('a writer whose lock is no longer in its place', () => {
  const lock = () => path('market/writer.json');

  it.each([
    ['removed', () => fs.rmSync(lock())],
    ['moved', () => fs.renameSync(lock(), path('elsewhere'))],
    ['replaced by a copy', () => replace(lock())],
    [
      'in a folder that another one has replaced',
      () => {
        fs.renameSync(path(), path('elsewhere'));
        fs.cpSync(path('elsewhere'), path(), { recursive: true });
      },
    ],
  ])('ends with an error before it writes more: its lock is %s', async (_how, act) => {
    const { send, errors, reported } = await start();
    const file = newest();
    act();
    await waitFor(() => errors.length > 0);
    expect([errors, reported]).toMatchObject(Array(2).fill([{ code: 'log-fenced', path: lock() }]));
    const { size } = fs.statSync(file);
    send(...frames(50, 60));
    await append(feedLog(path()), [opened(9_000), frame(99, 9_001)]);
    expect(fs.statSync(file).size).toBe(size);
    expect(textsOf(await read()).at(-1)).toBe('{"n":99}');
  });

  it('does not admit another writer while it still writes', async () => {
    const { end } = await start();
    fs.rmSync(lock());
    await expect(append(feedLog(path()), [])).rejects.toMatchObject({ code: 'log-in-use' });
    await end();
  });

  it('does not fence out the writer that has its folder now', async () => {
    const first = await start();
    fs.renameSync(path(), path('elsewhere'));
    const second = startWriter(feedLog(path(), { segmentBytes: 400 }));
    second.send(opened(5_000), ...frames(100, 110));
    first.send(...frames(50, 60));
    await waitFor(() => first.errors.length > 0);
    // The number of its next segment is that of a file without a record.
    second.send(...frames(110, 200));
    await second.end();
    expect([first.errors, second.errors]).toMatchObject([[{ code: 'log-fenced' }], []]);
    expect(textsOf(await read())).toHaveLength(100);
  });

  it('is not fenced out by a file without a record where its next segment begins', async () => {
    const { send, errors, end, reported } = await start(1, { segmentBytes: 1 });
    fs.writeFileSync(path('market/0000000000000002.ndjson'), '{"offset":2,"ty');
    send(frame(2), frame(3));
    await end();
    expect([reported, errors]).toEqual([[], []]);
    expect(textsOf(await read())).toHaveLength(3);
  });
});

describe('a consumer whose cursor is no longer in its place', () => {
  const cursor = () => path('market/cursors/db.json');

  it.each([
    ['removed', () => fs.rmSync(cursor())],
    ['replaced by a copy', () => replace(cursor())],
    ['in a folder that was removed', () => fs.rmSync(path('market/cursors'), { recursive: true })],
  ])('stops before it works or commits any more: its cursor is %s', async (_how, act) => {
    const log = feedLog(path());
    await write([opened(), ...frames(0, 50)]);
    const gate = new Subject<void>();
    let begun = 0;
    const work = async () => {
      begun += 1;
      await firstValueFrom(gate);
    };
    const errors: LogError[] = [];
    const committed: number[] = [];
    log.consume$('db', work, { maxBatch: 10 }).subscribe({
      next: (each) => committed.push(each.committed),
      error: (error: LogError) => errors.push(error),
    });
    await waitFor(() => begun === 1);
    gate.next();
    await waitFor(() => begun === 2);
    act();
    gate.next();
    await waitFor(() => errors.length > 0);
    expect([begun, committed]).toEqual([2, [10]]);
    expect(errors).toMatchObject([{ code: 'consumer-in-use', path: cursor() }]);
  });
});
