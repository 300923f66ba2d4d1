import { afterEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { closeSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { type OpenRecording, openRecording } from '../../../../src/operators/node/recording/open-recording.js';
import { frameLine, gapLine } from '../../../../src/operators/node/recording/recording-line.js';
import { tempFolder } from '../../../cli/support/temp-folder.js';
import { openFiles } from '../support/open-files.js';
import { frameAt, gapBetween } from '../support/recorded.js';

const folder = tempFolder();
let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);

const opened: OpenRecording[] = [];
afterEach(() => {
  for (const { fd } of opened.splice(0)) closeSync(fd);
});
const open = (path: string): OpenRecording => {
  const recording = openRecording(path);
  opened.push(recording);
  return recording;
};

const [one, two] = [frameLine(frameAt(1_000)), frameLine(frameAt(2_000))];

describe('openRecording', () => {
  it('begins with an empty file', () => {
    const path = fresh();
    writeFileSync(path, '');
    expect(open(path)).toMatchObject({ number: 0, length: 0, stoppedAt: undefined });
  });

  it('continues after the existing lines, and returns when they stopped', () => {
    const path = fresh();
    writeFileSync(path, one + two);
    expect(open(path)).toMatchObject({ length: (one + two).length, stoppedAt: 2_000 });
    writeFileSync(path, one + gapLine(gapBetween(1_000, 1_500)));
    expect(open(path).stoppedAt).toBe(1_500);
  });

  it('continues with the newest file', () => {
    const path = fresh();
    writeFileSync(path, one);
    for (let number = 1; number <= 11; number += 1) writeFileSync(`${path}.${number}`, two);
    writeFileSync(`${path}.13`, 'none of it');
    expect(open(path)).toMatchObject({ number: 11, length: two.length, stoppedAt: 2_000 });
  });

  it.each([
    ['in its last line', one + two.slice(0, -1), one, 1_000],
    ['in its last line, with zeros in place of the missing bytes', `${one}\0\0\0`, one, 1_000],
    ['in its last line, except for the newline', `${one}\0\0\0}\n`, one, undefined],
    ['in its first line', one.slice(0, -1), '', undefined],
    ['at its first bytes', '{"ty', '', undefined],
  ])('removes a line that a crash has torn %s', (_where, torn, whole, stoppedAt) => {
    const path = fresh();
    writeFileSync(path, torn);
    utimesSync(path, 3, 3);
    expect(open(path)).toMatchObject({ length: whole.length, stoppedAt: stoppedAt ?? 3_000 });
    expect(readFileSync(path, 'utf8')).toBe(whole);
  });

  it.each([65_534, 65_535, 65_536, 131_071])('removes a torn line of %i bytes', (length) => {
    const path = fresh();
    writeFileSync(path, one + two + 'x'.repeat(length));
    expect(open(path)).toMatchObject({ length: (one + two).length, stoppedAt: 2_000 });
  });

  it('returns when the recording stopped if the newest file is empty', () => {
    const path = fresh();
    writeFileSync(path, one + two);
    writeFileSync(`${path}.1`, '');
    writeFileSync(`${path}.2`, '{"type":"fra');
    expect(open(path)).toMatchObject({ number: 2, length: 0, stoppedAt: 2_000 });
    writeFileSync(path, '');
    expect(open(path)).toMatchObject({ number: 2, length: 0, stoppedAt: undefined });
    expect(openFiles().filter((file) => file.startsWith(path))).toEqual([`${path}.2`, `${path}.2`]);
  });

  it('finds a very long last line', () => {
    const path = fresh();
    const long = frameLine(frameAt(5_000, 'x'.repeat(200_000)));
    writeFileSync(path, one + long + long.slice(0, 150_000));
    expect(open(path)).toMatchObject({ length: (one + long).length, stoppedAt: 5_000 });
  });

  it('uses the time of the file if the last line has no time', () => {
    const path = fresh();
    writeFileSync(path, `${one}{"type":"of the future"}\n`);
    utimesSync(path, 7, 7);
    expect(open(path).stoppedAt).toBe(7_000);
  });

  it.each(['root:x:0:0:root:/root:/bin/sh\n', '{"batch":1}\n', 'x', '{"type":"other","x":1}\n'])(
    'refuses a file that is not a recording, and does not change it: %j',
    (text) => {
      const path = fresh();
      writeFileSync(path, text);
      expect(() => open(path)).toThrow(
        expect.objectContaining({
          name: 'RecordingError',
          path,
          message: `The file ${path} already exists and is not a recording. Nothing was written to it. Use another path.`,
        }),
      );
      expect(readFileSync(path, 'utf8')).toBe(text);
      expect(openFiles()).not.toContain(path);
    },
  );

  it('refuses a pipe, because opening it waits for a reader', () => {
    const path = fresh();
    execFileSync('mkfifo', [path]);
    expect(() => open(path)).toThrow(`Cannot write the recording ${path}: the path is a pipe or a socket, not a file.`);
  });

  it('explains an error of the file system, and keeps it as the cause', () => {
    const path = folder.path('missing/feed.ndjson');
    expect(() => open(path)).toThrow(
      expect.objectContaining({
        name: 'RecordingError',
        path,
        message: `Cannot write the recording ${path}: there is no such file or folder.`,
        cause: expect.objectContaining({ code: 'ENOENT' }),
      }),
    );
    expect(() => open(folder.path('.'))).toThrow(/the path is a directory/);
    expect(() => open(folder.path('x'.repeat(300)))).toThrow(
      /Cannot write the recording .*: the name or the path is too long/,
    );
  });
});
