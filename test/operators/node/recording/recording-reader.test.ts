import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import {
  createRecordingReader,
  type RecordingReader,
} from '../../../../src/operators/node/recording/recording-reader.js';
import { tempFolder } from '../../../cli/support/temp-folder.js';
import { openFiles } from '../support/open-files.js';
import { cases } from '../../../support/cases.js';
import { waitFor } from '../../../support/wait-for.js';

const folder = tempFolder();
let count = 0;
const recording = (...files: readonly string[]): string => {
  const path = folder.path(`recording-${(count += 1)}`);
  files.forEach((text, number) => writeFileSync(number === 0 ? path : `${path}.${number}`, text));
  return path;
};

const readers: RecordingReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.unsubscribe();
});
const readerOf = (path: string, offset = 0, piece?: number): RecordingReader => {
  const reader = createRecordingReader(path, offset, piece);
  readers.push(reader);
  return reader;
};

interface Piece {
  readonly text: string;
  readonly file: string;
  readonly fileOffset: number;
  readonly offset: number;
}

const piecesOf = async (reader: RecordingReader, path: string): Promise<Piece[]> => {
  const pieces: Piece[] = [];
  for (let read = await reader.read(); read !== undefined; read = await reader.read()) {
    const { bytes, path: file, fileOffset, offset } = read;
    pieces.push({ text: bytes.toString(), file: file.slice(path.length), fileOffset, offset });
  }
  return pieces;
};

const [one, two, three] = ['{"n":1}\n', '{"n":"two"}\n', '{"n":"three"}\n'];

describe('createRecordingReader', () => {
  it('returns complete lines for any size of a chunk, with their positions in the file and the recording', async () => {
    const lines = fc.array(
      fc.string({ unit: fc.constantFrom('a', 'é', '🚀'), maxLength: 40 }).map((text) => `{${text}\n`),
      { maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(
        lines,
        lines,
        fc.constantFrom('', '{torn'),
        fc.integer({ min: 1, max: 60 }),
        async (a, b, torn, piece) => {
          const files = [a.join(''), b.join('')];
          const path = recording(files[0] as string, `${files[1] as string}${torn}`);
          const reader = readerOf(path, 0, piece);
          const pieces = await piecesOf(reader, path);
          expect(pieces.map(({ text }) => text).join('')).toBe(files.join(''));
          let [offset, fileOffset, file] = [0, 0, ''];
          for (const piece of pieces) {
            expect(piece.text.endsWith('\n')).toBe(true);
            if (piece.file !== file) fileOffset = 0;
            file = piece.file;
            expect(piece).toMatchObject({ offset, fileOffset });
            offset += Buffer.byteLength(piece.text);
            fileOffset += Buffer.byteLength(piece.text);
          }
          expect(reader.totalBytes).toBe(Buffer.byteLength(files.join('') + torn));
          expect(reader.tornBytes).toBe(torn.length);
          reader.unsubscribe();
        },
      ),
      { numRuns: cases(60) },
    );
  });

  it('begins after any line of any file', async () => {
    const path = recording(one + two, '', three);
    const all = one + two + three;
    for (const offset of [0, one.length, (one + two).length, all.length]) {
      const pieces = await piecesOf(readerOf(path, offset), path);
      expect(pieces.map(({ text }) => text).join('')).toBe(all.slice(offset));
      expect(pieces[0]?.offset).toBe(offset === all.length ? undefined : offset);
    }
  });

  it('reads lines that were appended to a file before its next file was opened', async () => {
    const path = recording(one);
    const reader = readerOf(path);
    expect((await reader.read())?.bytes.toString()).toBe(one);
    // The recorder rotates after the reader has reached the end, and before the reader opens the next file.
    const handle = await open(path);
    const filesOpen = (): readonly string[] => openFiles().filter((file) => file.startsWith(path));
    const prototype = Object.getPrototypeOf(handle) as typeof handle;
    await handle.close();
    const read = prototype.read as (...args: unknown[]) => Promise<unknown>;
    const spy = jest.spyOn(prototype, 'read').mockImplementationOnce(async function (
      this: unknown,
      ...args: unknown[]
    ) {
      const end = await read.apply(this, args);
      appendFileSync(path, two);
      writeFileSync(`${path}.1`, three);
      return end as never;
    });
    const last = await reader.read();
    spy.mockRestore();
    expect(filesOpen()).toHaveLength(2);
    expect(last).toMatchObject({ path, offset: one.length, bytes: Buffer.from(two) });
    const next = await reader.read();
    expect(next).toMatchObject({ path: `${path}.1`, fileOffset: 0, offset: (one + two).length });
    expect(next?.bytes.toString()).toBe(three);
    expect(await reader.read()).toBeUndefined();
    expect(filesOpen()).toHaveLength(1);
  });

  it('refuses an offset inside a line, after the end, or after a torn line', async () => {
    const path = recording(one + two, `${three}{torn`);
    for (const offset of [1, one.length - 1, (one + two).length + 3, (one + two + three).length + 5])
      await expect(readerOf(path, offset).read()).rejects.toMatchObject({
        name: 'RecordingError',
        message: `The offset ${offset} is inside a line of the recording ${path}. Use an offset that a replay reported, or 0.`,
      });
    await expect(readerOf(path, 1_000).read()).rejects.toMatchObject({
      message: `The offset 1000 is after the end of the recording ${path}, which has ${(one + two + three).length + 5} bytes. Use an offset that a replay reported, or 0.`,
    });
  });

  it('does not search a file of another format for lines', async () => {
    const path = recording('x'.repeat(1_000));
    await expect(readerOf(path, 0, 10).read()).rejects.toMatchObject({
      path,
      lineAt: 0,
      message: `The file ${path} isn't a recording: its first line isn't one that recordTo or \`rx-trade-feed listen --json\` writes. Check the path.`,
    });
  });

  it('explains why a file cannot be read', async () => {
    const read = (path: string) => readerOf(path).read();
    const missing = folder.path('missing');
    await expect(read(missing)).rejects.toMatchObject({
      name: 'RecordingError',
      path: missing,
      message: `Can't read the recording ${missing}: there is no such file or folder.`,
      cause: { code: 'ENOENT' },
    });
    await expect(read(folder.path('.'))).rejects.toThrow(/: the path is a directory\.$/);
    const pipe = folder.path('pipe');
    execFileSync('mkfifo', [pipe]);
    await expect(read(pipe)).rejects.toThrow(`Can't read the recording ${pipe}: the path isn't a file.`);
    const path = recording(one);
    execFileSync('mkfifo', [`${path}.1`]);
    await expect(read(path)).rejects.toThrow(`Can't read the recording ${path}.1: the path isn't a file.`);
  });

  it('does not read a file without a newline into memory', async () => {
    const long = `{"n":"${'x'.repeat(92)}"}\n`;
    const path = recording(one + long);
    const reader = createRecordingReader(path, 0, 10, 101);
    readers.push(reader);
    expect((await reader.read())?.bytes.toString()).toBe(one);
    expect((await reader.read())?.bytes.toString()).toBe(long);
    const short = createRecordingReader(path, 0, 10, 100);
    readers.push(short);
    await short.read();
    await expect(short.read()).rejects.toMatchObject({
      path,
      lineAt: one.length,
      message: `The line at byte ${one.length} of ${path} is too long. Check that the file is a recording.`,
    });
  });

  it('closes its file, also while it is opening or reading', async () => {
    const path = recording(one, two);
    const [idle, opening, reading] = [readerOf(path), readerOf(path), readerOf(path)];
    idle.unsubscribe();
    const opened = opening.read();
    opening.unsubscribe();
    expect(await opened.catch(() => undefined)).toBeUndefined();
    await reading.read();
    const read = reading.read();
    reading.unsubscribe();
    await read.catch(() => undefined);
    await waitFor(() => !openFiles().some((file) => file.startsWith(path)));
    rmSync(path);
  });
});
