import { afterEach, describe, expect, it } from '@jest/globals';
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
  close();
});
const close = (): void => {
  for (const { fd, releasePart } of opened.splice(0)) {
    releasePart();
    closeSync(fd);
  }
};
const open = (path: string): OpenRecording => {
  const recording = openRecording(path);
  opened.push(recording);
  return recording;
};

const [one, two] = [frameLine(frameAt(1_000)), frameLine(frameAt(2_000))];

describe('openRecording', () => {
  it('continues after the existing lines, and returns when they stopped', () => {
    const path = fresh();
    writeFileSync(path, one + two);
    expect(open(path)).toMatchObject({ length: (one + two).length, stoppedAt: 2_000 });
    writeFileSync(path, one + gapLine(gapBetween(1_000, 1_500)));
    expect(open(path).stoppedAt).toBe(1_500);
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
    close();
    writeFileSync(path, '');
    expect(open(path)).toMatchObject({ number: 2, length: 0, stoppedAt: undefined });
    expect(openFiles().filter((file) => file.startsWith(path))).toEqual([`${path}.2`, `${path}.2`]);
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
          message: `The file ${path} already exists and isn't a recording. Nothing was written to it. Use another path.`,
        }),
      );
      expect(readFileSync(path, 'utf8')).toBe(text);
      expect(openFiles()).not.toContain(path);
    },
  );
});
