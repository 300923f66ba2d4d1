import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { basename } from 'node:path';
import { firstValueFrom, Subject } from 'rxjs';
import { feedLog, type LogError, type LogRecord } from '../../src/log/index.js';
import { waitFor } from '../support/wait-for.js';
import { append, follow, frame, frames, opened, path, read, segments, startWriter, textsOf, write } from './support.js';

const newest = () => segments().at(-1)!;
const offsetsOf = (records: readonly LogRecord[]) =>
  records.flatMap((record) => ('offset' in record ? (record.offset ?? []) : []));
const gapsOf = (records: readonly LogRecord[]) => records.flatMap((record) => (record.type === 'gap' ? [record] : []));
/** The frames of a reader, and those that its gaps count. */
const counted = (records: readonly LogRecord[]) =>
  gapsOf(records).reduce((sum, { missed = NaN }) => sum + missed, textsOf(records).length);
const cut = (file: string, share: number) => fs.truncateSync(file, Math.floor(fs.statSync(file).size * share));
const replace = (file: string) => {
  fs.copyFileSync(file, path('copy'));
  fs.renameSync(path('copy'), file);
};

describe('a writer whose newest segment or folder is no longer in its place', () => {
  const segmentIs: readonly (readonly [string, () => void])[] = [
    ['removed', () => fs.rmSync(newest())],
    ['moved', () => fs.renameSync(newest(), path('elsewhere'))],
    [
      'removed, and another link of it remains',
      () => {
        fs.linkSync(newest(), path('link'));
        fs.rmSync(newest());
      },
    ],
    ['replaced by a copy', () => replace(newest())],
    ['cut to nothing', () => cut(newest(), 0)],
    ['cut in the middle', () => cut(newest(), 0.5)],
  ];
  const folderIs: readonly (readonly [string, () => void])[] = [
    ['removed', () => fs.rmSync(path(), { recursive: true })],
    ['moved', () => fs.renameSync(path(), path('elsewhere'))],
    [
      'removed and made again',
      () => {
        fs.rmSync(path(), { recursive: true });
        fs.mkdirSync(path());
      },
    ],
  ];
  const all = [
    ...segmentIs.map(([how, act]) => [`its segment is ${how}`, act] as const),
    ...folderIs.map(([how, act]) => [`its folder is ${how}`, act] as const),
  ];

  it.each(all)('says so at once, and goes on with the exact number of lost frames: %s', async (_how, act) => {
    const log = feedLog(path());
    const reported: LogError[] = [];
    const { send, errors, end } = startWriter(log, { onError: (error) => void reported.push(error) });
    const reader = follow(log);
    send(opened(), ...frames(0, 50));
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
    // What a reader had received has its offset for itself.
    const had = new Map(before.map((record) => [(record as { offset?: number }).offset, textsOf([record])[0]]));
    for (const record of records)
      if (record.type === 'frame' && had.has(record.offset)) expect(had.get(record.offset)).toBe(record.text());
    const offsets = offsetsOf(reader.records);
    expect(offsets).toEqual([...new Set(offsets)].sort((one, other) => one - other));
  });

  it('finds it also when lines were written after it was cut', async () => {
    const reported: LogError[] = [];
    const { send, end } = startWriter(feedLog(path()), { onError: (error) => void reported.push(error) });
    send(opened(), ...frames(0, 50));
    await waitFor(async () => textsOf(await read()).length === 50);
    // A look at it comes four times a second.
    await waitFor(
      () => (JSON.parse(fs.readFileSync(path('market/writer.json'), 'utf8')) as { offset: number }).offset > 50,
    );
    cut(newest(), 0);
    send(...frames(50, 120));
    await waitFor(() => reported.length > 0);
    await end();
    const records = await read();
    const [own] = gapsOf(records).filter(({ failure }) => failure.code === 'log-write-failed');
    expect(textsOf(records).length + (own?.missed ?? NaN)).toBe(120);
  });

  it('has the number in the log also if it ends before it has looked', async () => {
    const reported: LogError[] = [];
    const { send, end } = startWriter(feedLog(path()), { onError: (error) => void reported.push(error) });
    send(opened(), ...frames(0, 50));
    await waitFor(async () => textsOf(await read()).length === 50);
    fs.rmSync(newest());
    send(...frames(50, 60));
    await end();
    expect(reported).toHaveLength(1);
    expect(counted(await read())).toBe(60);
  });

  it('ends its stream with the failure by default', async () => {
    const { send, errors } = startWriter(feedLog(path()));
    send(opened(), ...frames(0, 50));
    await waitFor(async () => textsOf(await read()).length === 50);
    fs.rmSync(newest());
    await waitFor(() => errors.length > 0);
    expect(errors).toMatchObject([{ code: 'log-write-failed', message: expect.stringContaining(basename(path())) }]);
  });

  it('takes another hard link of its segment for what it is: a copy that costs nothing', async () => {
    const reported: LogError[] = [];
    const { send, errors, end } = startWriter(feedLog(path()), { onError: (error) => void reported.push(error) });
    send(opened(), ...frames(0, 5));
    await waitFor(async () => textsOf(await read()).length === 5);
    fs.linkSync(newest(), path('link'));
    send(...frames(5, 10));
    await waitFor(async () => textsOf(await read()).length === 10);
    await end();
    expect([reported, errors]).toEqual([[], []]);
  });
});

describe('a writer whose lock is no longer in its place', () => {
  const lock = () => path('market/writer.json');
  const start = async () => {
    const reported: LogError[] = [];
    const writer = startWriter(feedLog(path()), { onError: (error) => void reported.push(error) });
    writer.send(opened(), ...frames(0, 50));
    await waitFor(async () => textsOf(await read()).length === 50);
    return { ...writer, reported };
  };

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
    const second = startWriter(feedLog(path()), { segmentBytes: 400 });
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
    const { send, errors, end } = startWriter(feedLog(path()), { segmentBytes: 1 });
    send(opened(), frame(1));
    await waitFor(async () => textsOf(await read()).length === 1);
    fs.writeFileSync(path('market/0000000000000002.ndjson'), '{"offset":2,"ty');
    send(frame(2), frame(3));
    await end();
    expect(errors).toEqual([]);
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
