import { describe, expect, it } from '@jest/globals';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { lastValueFrom, NEVER, Subject, take } from 'rxjs';
import { appended } from '../../src/log/append.js';
import { feedLog, type FeedLogOptions, type LogError, type LogRecord } from '../../src/log/index.js';
import { sealableLine, sealedBytes } from '../../src/log/lines.js';
import { folderDefaults, type FolderSettings } from '../../src/log/options.js';
import { openLog } from '../../src/log/recovery.js';
import { type Machine, scanFile } from '../../src/log/segments.js';
import { LogWriter } from '../../src/log/writer.js';
import { Frame } from '../../src/protocol/frame.js';
import { itInCi } from '../support/cases.js';
import { waitFor } from '../support/wait-for.js';
import { cut, done, frame, frames, opened, path, placesOf, read, segments } from './support.js';
import { startWriter, texts, textsOf, write } from './support.js';

const machine = (more: object = {}): Machine => ({
  disk: { ...fs, ...more },
  lockFile: () => true,
  now: () => Date.now(),
  monotonic: () => performance.now(),
  newId: () => 'a log',
  every: (ms, call) => {
    const timer = setInterval(call, ms);
    return () => clearInterval(timer);
  },
  soon: queueMicrotask,
  atExit: () => () => undefined,
  warn: () => undefined,
  gzip: (bytes, end) => end(null, gzipSync(bytes)),
});

describe('an end of the log with a function as `onError`', () => {
  /** A writer on a broken disk, whose source stays open. */
  const start = (broken: object, options: Partial<FolderSettings> = {}) => {
    const source = new Subject<unknown>();
    const [reported, errors]: [LogError[], LogError[]] = [[], []];
    const settings = { ...folderDefaults, ...options };
    const openWriter = (fail: ConstructorParameters<typeof LogWriter>[3]) =>
      new LogWriter(path(), settings, machine(broken), fail);
    const subscription = appended(source, {
      ...{ path: path(), openWriter, closing$: NEVER },
      onError: (error) => void reported.push(error),
    }).subscribe({
      error: (error: LogError) => errors.push(error),
    });
    return { source, reported, errors, subscription };
  };
  const fails = (_fd: number, call: (error: Error) => void) => call(new Error('EIO'));

  it.each([
    ['bytes', { syncMs: 0 }],
    ['a complete segment', { syncMs: 1e6, segmentBytes: 1 }],
  ])('is an error of the stream, which the function receives too: the disk refuses %s', async (_what, options) => {
    const { source, reported, errors } = start({ fdatasync: fails }, options);
    for (const event of frames(0, 2)) source.next(event);
    await waitFor(() => errors.length > 0);
    expect([reported, errors]).toMatchObject([[{ code: 'log-write-failed' }], [{ code: 'log-write-failed' }]]);
    expect(source.observed).toBe(false);
  });

  it('is an error of the stream if another writer has the log', async () => {
    const { source, reported, errors } = start({}, { segmentBytes: 1 });
    source.next(frame(0));
    await waitFor(() => segments().length === 1);
    fs.rmSync(path('market/writer.json'));
    source.next(frame(1));
    await waitFor(() => errors.length > 0);
    expect([reported, errors]).toMatchObject([[{ code: 'log-fenced' }], [{ code: 'log-fenced' }]]);
  });

  it('is only told to the function once the subscriber has left, and ends nothing else', () => {
    let isBroken = false;
    const fdatasyncSync = (fd: number) => {
      if (isBroken) throw new Error('EIO');
      fs.fdatasyncSync(fd);
    };
    const { source, reported, subscription } = start({ fdatasyncSync });
    source.next(frame(0));
    isBroken = true;
    subscription.unsubscribe();
    expect(reported).toMatchObject([{ code: 'log-write-failed' }]);
  });
});

describe('the next writer, if records that were there are gone', () => {
  const commit = async (offset: number) => {
    const committed$ = feedLog(path()).consume$('db', done, { maxBatch: 1 });
    await lastValueFrom(committed$.pipe(take(offset)));
  };
  const tip = () => path('market/writer.json');
  const newest = () => segments().at(-1)!;
  const remove = (...files: readonly string[]) => files.forEach((each) => fs.rmSync(each));

  it.each<[string, () => void]>([
    ['the newest segment is removed', () => remove(newest())],
    ['the newest segment is cut', () => cut(newest(), 0.5)],
    ['the newest segment is cut to nothing', () => cut(newest(), 0)],
    ['the newest segments are removed', () => remove(...segments().slice(2))],
    ['all segments are removed', () => remove(...segments())],
    ['the newest one and the tip are removed', () => remove(newest(), tip())],
    [
      'the newest one is removed after a kill',
      () => {
        remove(newest());
        const text = fs.readFileSync(tip(), 'utf8');
        fs.writeFileSync(tip(), text.replace('"closed":true', '"closed":false'));
      },
    ],
    [
      'the newest one is compressed and damaged',
      () => {
        fs.renameSync(newest(), `${newest()}.gz`);
        fs.writeFileSync(newest(), 'damaged');
      },
    ],
  ])('gives no offset of a generation a second content, and a consumer gets a gap: %s', async (_how, act) => {
    await write([opened(), ...frames(0, 87)], { segmentBytes: 2_000 });
    const before = await read();
    await commit(88);
    act();
    await write([opened(5_000), ...frames(100, 400).map((each) => frame(each.receivedAt, 5_000 + each.receivedAt))]);
    const seen: LogRecord[] = [];
    const rest$ = feedLog(path()).consume$('db', (records) => Promise.resolve(seen.push(...records)), {
      maxBatch: 500,
    });
    await lastValueFrom(rest$.pipe(take(1)));
    expect(seen.some(({ type }) => type === 'gap')).toBe(true);
    expect(textsOf(seen)).toHaveLength(300);
    expect(placesOf(seen).filter((place) => placesOf(before).includes(place))).toEqual([]);
  });

  it.each(['{}', '[]', 'null', '{"offset":"x"}', 'nonsense'])(
    'takes a tip with the content %s for none',
    async (text) => {
      await write([opened(), frame(1)]);
      fs.writeFileSync(tip(), text);
      await write([opened(5_000), frame(2, 5_001)]);
      expect(textsOf(await read())).toEqual(texts(1, 3));
    },
  );
});

describe('a segment that is larger than a string can be', () => {
  it('is scanned in pieces, whatever the length of its lines', async () => {
    const large = [1, 3_000_000, 1_048_576, 10].map(
      (length, n) => new Frame('market', Buffer.alloc(length, 'x'), false, 1_000 + n, 1),
    );
    await write([opened(), ...large, ...frames(10, 20_000)]);
    const [file] = segments();
    const lengths: number[] = [];
    const disk = {
      readFileSync: (name: string, encoding: 'utf8') => {
        if (name === file) throw new Error('A whole segment at once.');
        return fs.readFileSync(name, encoding);
      },
      readSync: (...args: Parameters<typeof fs.readSync>) => {
        lengths.push((args as unknown as readonly number[])[3]!);
        return fs.readSync(...args);
      },
    };
    expect(openLog(path(), machine(disk)).generation).toMatchObject({ offset: 19_995, frames: 19_994, holes: 0 });
    expect(Math.max(...lengths)).toBeLessThanOrEqual(4 * 1024 * 1024);
    const bytes = fs.readFileSync(file!);
    fs.writeFileSync(`${file}.gz`, gzipSync(bytes));
    const compressed = { offset: 0, path: `${file}.gz`, isCompressed: true };
    expect(scanFile(fs, compressed)).toMatchObject({ place: { offset: 19_995 }, length: bytes.length });
  });

  itInCi(
    'can be continued, read and inspected at 600 MB',
    async () => {
      await write([opened(), frame(0)]);
      const fd = fs.openSync(segments()[0]!, 'a');
      const large = new Frame('market', Buffer.alloc(1_000_000, 'x'), false, 1_000, 1);
      for (let n = 2; n < 602; n += 1) fs.writeSync(fd, sealedBytes(sealableLine(n, large, 1_000, 1_000)));
      fs.closeSync(fd);
      await write([opened(5_000), frame(1, 5_001)]);
      const records = await read({ from: { offset: 600 } });
      expect(
        textsOf(records)
          .slice(-2)
          .map(({ length }) => length),
      ).toEqual([1_000_000, 7]);
    },
    120_000,
  );

  it.each([
    [
      { segmentBytes: 1e9 },
      '`segmentBytes` must be a whole number of bytes, above 0 and at most 536870912, got 1000000000',
    ],
    [{ segmentBytes: Infinity }, '`segmentBytes` must be a whole number of bytes'],
    [{ segmentBytes: 0 }, '`segmentBytes` must be a whole number of bytes'],
    [{ maxBytes: 1e6, segmentBytes: 600_000 }, '`segmentBytes` must be at most a third of `maxBytes`, got 600000'],
    [
      { maxBytes: 1e6, segmentBytes: 300_000, compress: true },
      '`segmentBytes` must be at most a quarter of `maxBytes` with `compress`, got 300000',
    ],
    [{ segmentBytes: 2.5 }, '`segmentBytes` must be a whole number of bytes, above 0 and at most 536870912, got 2.5'],
    [{ maxBytes: 1.5 }, '`maxBytes` must be a whole number of bytes above 0, or Infinity, got 1.5'],
    [{ maxBytes: -1 }, '`maxBytes` must be a whole number of bytes above 0, or Infinity, got -1'],
    [{ maxWaitingBytes: 0.5 }, '`maxWaitingBytes` must be a whole number of bytes above 0, or Infinity, got 0.5'],
    [{ maxAgeMs: 0 }, '`maxAgeMs` must be a number of ms above 0, or Infinity, got 0'],
    [{ syncMs: -1 }, '`syncMs` must be a number of ms, 0 or more, or Infinity, got -1'],
    [{ compress: 1 }, '`compress` must be true or false, got 1'],
    [{ onError: 'error' }, "`onError` doesn't exist: the options are maxBytes, maxAgeMs, segmentBytes"],
    [null, '`options` must be an object'],
  ])('is refused by the call of feedLog: %j', (options, message) => {
    expect(() => feedLog(path(), options as FeedLogOptions)).toThrow(message);
    expect(fs.existsSync(path())).toBe(false);
  });

  it.each([
    [{ maxBytes: 1e9 }, "`maxBytes` doesn't exist: the options are onError"],
    [{ onError: 'gap' }, "`onError` must be 'error' or a function"],
  ])('is refused by the call of append: %j', (options, message) => {
    expect(() => feedLog(path()).append(options as never)).toThrow(message);
    expect(fs.existsSync(path())).toBe(false);
  });

  it('has no limit that is too small for the default size of a segment', () => {
    for (const maxBytes of [1, 7, 1e6, 1e12, Infinity]) expect(() => feedLog(path(), { maxBytes })).not.toThrow();
  });
});

describe('maxBytes', () => {
  const bytes = () =>
    fs
      .readdirSync(path(), { recursive: true, withFileTypes: true })
      .reduce((sum, each) => sum + (each.isFile() ? fs.statSync(join(each.parentPath, each.name)).size : 0), 0);
  const payload = (n: number, text: string) => new Frame('market', Buffer.from(text), false, 1_000 + n, 1);
  const random = (n: number) => `${n} ${Array.from({ length: 30 }, () => Math.random().toString(36)).join('')}`;

  it.each<[string, FeedLogOptions, (n: number) => string, number]>([
    ['by default', {}, random, 1],
    ['with frames that come at once', {}, random, 2_000],
    ['with compression', { compress: true }, random, 1],
    ['with compression of what hardly gets smaller', { compress: true, segmentBytes: 50_000 }, random, 100],
    ['with text that has three bytes a character', {}, () => '€'.repeat(300), 500],
    ['with the largest segments', { segmentBytes: 66_000 }, random, 10],
    ['with records larger than a segment', {}, () => 'x'.repeat(60_000), 3],
  ])('is never exceeded by all files together, and is used: %s', async (_how, options, text, turn) => {
    const maxBytes = 200_000;
    await write([opened(900)]);
    await lastValueFrom(feedLog(path()).consume$('db', done).pipe(take(1)));
    const { send, end, errors } = startWriter(feedLog(path(), { maxBytes, ...options }));
    let most = 0;
    for (let n = 0, length = 0; length < 5 * maxBytes; n += turn) {
      const all = Array.from({ length: turn }, (_, i) => payload(n + i, text(n + i)));
      for (const each of all) length += each.byteLength;
      send(...all);
      await (n % (turn * 20) === 0 ? read({ from: 'latest' }) : new Promise(setImmediate));
      most = Math.max(most, bytes());
    }
    await end();
    expect(errors).toEqual([]);
    most = Math.max(most, bytes());
    expect(most).toBeLessThanOrEqual(maxBytes);
    expect(most).toBeGreaterThan(maxBytes / 2);
    expect(textsOf(await read()).length).toBeGreaterThan(0);
  });
});
