import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, NEVER, type Observable, of, Subject, take, toArray } from 'rxjs';
import { linesOf, openLineSource, pacedAt } from '../../../src/cli/serve/line-source.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const all = async <T>(values: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
};
const listOf = (lines$: Observable<string>): Promise<string[]> =>
  lastValueFrom(lines$.pipe(toArray()), { defaultValue: [] });

describe('linesOf', () => {
  it('splits only at newlines, for any size of the chunks, and skips empty lines', async () => {
    const text = '{"名":"🚀"}\n\r\n\na\u2028b\rc\r\nlast';
    const bytes = [...Buffer.from(text)].map((byte) => Buffer.of(byte));
    expect(await all(linesOf(Readable.from(bytes)))).toStrictEqual(['{"名":"🚀"}', 'a\u2028b\rc', 'last']);
    expect(await all(linesOf(Readable.from([Buffer.from(text)])))).toStrictEqual([
      '{"名":"🚀"}',
      'a\u2028b\rc',
      'last',
    ]);
    expect(await all(linesOf(Readable.from([])))).toStrictEqual([]);
  });
});

describe('pacedAt', () => {
  const numbers = (count: number): Readable => Readable.from(Array.from({ length: count }, (_, n) => n));
  const never = new AbortController().signal;

  it('keeps a low or high rate', async () => {
    for (const [rate, count] of [
      [100, 6],
      [10_000, 600],
    ] as const) {
      const startedAt = performance.now();
      expect(await all(pacedAt(rate, numbers(count), never))).toHaveLength(count);
      expect(performance.now() - startedAt).toBeGreaterThan(45);
    }
  });

  it('ends its wait when it is aborted', async () => {
    const abort = new AbortController();
    const paced = pacedAt(0.001, numbers(2), abort.signal);
    expect(await paced.next()).toMatchObject({ value: 0 });
    const next = paced.next();
    abort.abort();
    await expect(next).rejects.toThrow('aborted');
  });
});

describe('openLineSource', () => {
  const open = (
    source: string,
    options: { rate?: number; stdin?: Readable; firstClient$?: Observable<unknown> } = {},
  ) => openLineSource({ source, rate: undefined, stdin: new PassThrough(), firstClient$: of(1), ...options });

  it('emits the lines of stdin as they arrive', async () => {
    const stdin = new PassThrough();
    const { lines$, description } = await open('-', { stdin, firstClient$: NEVER });
    expect(description).toBe('the lines of stdin, as they arrive');
    const seen = new Subject<string>();
    const first = lastValueFrom(seen.pipe(take(1)));
    const subscription = lines$.subscribe(seen);
    stdin.write('one\ntw');
    expect(await first).toBe('one');
    const second = lastValueFrom(seen.pipe(take(1)));
    stdin.write('o\n');
    expect(await second).toBe('two');
    const closed = once(stdin, 'close');
    subscription.unsubscribe();
    await closed;
  });

  it('begins a file when the first client connects, at a rate', async () => {
    const file = await folder.file('frames', 'one\ntwo\nthree\n');
    const firstClient$ = new Subject<void>();
    const { lines$, description } = await open(file, { rate: 1_000, firstClient$ });
    expect(description).toBe(`the lines of ${file}, 1000 a second from when the first client connects`);
    const lines = listOf(lines$);
    firstClient$.next();
    firstClient$.next();
    expect(await lines).toStrictEqual(['one', 'two', 'three']);
    expect((await open(file)).description).toContain('20 a second');
  });

  it('begins any source with a rate when the first client connects', async () => {
    const stdin = new PassThrough();
    const firstClient$ = new Subject<void>();
    const { lines$, description } = await open('-', { rate: 1_000, stdin, firstClient$ });
    expect(description).toBe('the lines of stdin, 1000 a second from when the first client connects');
    stdin.end('one\ntwo\n');
    const lines = listOf(lines$);
    firstClient$.next();
    expect(await lines).toStrictEqual(['one', 'two']);
  });

  it('emits the lines of a named pipe', async () => {
    const pipe = folder.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const { lines$, description } = await open(pipe, { firstClient$: NEVER });
    expect(description).toBe(`the lines of ${pipe}, as they arrive`);
    const lines = listOf(lines$);
    await folder.file('pipe', 'one\ntwo\n');
    expect(await lines).toStrictEqual(['one', 'two']);
  });

  it('explains why a file cannot be read', async () => {
    await expect(open(folder.path('missing'))).rejects.toMatchObject({
      exitCode: 8,
      message: 'Cannot read the file of --source: there is no such file.',
    });
    await expect(open(folder.path('.'))).rejects.toMatchObject({
      message: 'Cannot read the file of --source: the path is a directory.',
    });
  });
});
