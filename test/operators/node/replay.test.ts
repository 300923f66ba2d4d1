import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, toArray } from 'rxjs';
import { Frame, type Gap, recordTo, replay$, type ReplayOptions, type ReplayProgress } from '../../../src/index.js';
import { frameLine } from '../../../src/operators/node/recording/recording-line.js';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { openFiles } from './support/open-files.js';
import { essence, frameAt, payloadsOf, replayed, sequences } from './support/recorded.js';
import { cases } from '../../support/cases.js';
import { waitFor } from '../../support/wait-for.js';

const folder = tempFolder();
let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);

const record = (events: readonly (Frame | Gap)[], path = fresh(), maxFileBytes = Infinity): string => {
  from(events).pipe(recordTo(path, { maxFileBytes })).subscribe();
  return path;
};

// A recording without events has no file.
const recordings = sequences.filter(({ length }) => length > 0);

afterAll(async () => {
  const left = (): boolean => openFiles().some((file) => file.startsWith(folder.path('')));
  await waitFor(() => !left());
});

describe('a replay of a recording', () => {
  it('emits the same bytes for any payloads and any rotation', async () => {
    const sizes = fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 2_000 }));
    await fc.assert(
      fc.asyncProperty(recordings, sizes, async (events, maxFileBytes) => {
        const path = record(events, fresh(), maxFileBytes);
        expect((await replayed(path)).map(essence)).toEqual(events.map(essence));
      }),
      { numRuns: cases(60) },
    );
  });

  it('continues from the offset of any event', async () => {
    await fc.assert(
      fc.asyncProperty(recordings, fc.integer({ min: 1, max: 1_500 }), fc.nat(), async (events, maxFileBytes, pick) => {
        const path = record(events, fresh(), maxFileBytes);
        const all = await replayed(path);
        const offsets = [0, ...all.map(({ offset }) => offset)];
        const chosen = pick % offsets.length;
        expect(await replayed(path, { offset: offsets[chosen] as number })).toEqual(all.slice(chosen));
      }),
      { numRuns: cases(60) },
    );
  });

  it('works for every possible length of a torn last line', async () => {
    const path = record([frameAt(1, 'a'), frameAt(2, 'é"\n')]);
    const whole = readFileSync(path);
    const first = whole.indexOf(0x0a) + 1;
    for (let length = first; length < whole.length; length += 1) {
      writeFileSync(path, whole.subarray(0, length));
      expect(await payloadsOf(path)).toEqual(['a']);
    }
  });
});

describe('a recording that ends in a torn line', () => {
  const [one, two, three] = [1, 2, 3].map((ms) => frameLine(frameAt(ms))) as [string, string, string];
  const from = (one + two).length;

  const tornIn = async (path: string, options: ReplayOptions = {}) => {
    const told: ReplayProgress[] = [];
    const events = await replayed(path, { ...options, onProgress: (progress) => told.push(progress) });
    expect(told.slice(0, -1).filter(({ torn }) => torn !== undefined)).toEqual([]);
    return { frames: events.length, torn: told.at(-1)?.torn, told: told.length };
  };

  it.each([
    ['that has no newline', three.slice(0, 40), 40],
    ['of one byte', '{', 1],
    ['that a power cut has filled with zeros, newline and all', '\0'.repeat(30) + '\n', 31],
    ['that is not readable, before one that has no newline', `{"type":"fra\n${three.slice(0, 7)}`, 20],
    ['before an empty line', '{"type":"fra\n\n', 14],
  ])('reports the position and length of the torn line: one %s', async (_which, torn, bytes) => {
    const path = fresh();
    writeFileSync(path, one + two + torn);
    expect(await tornIn(path)).toMatchObject({ frames: 2, torn: { at: from, bytes } });
    expect(await tornIn(path, { offset: one.length })).toMatchObject({ frames: 1, torn: { at: from, bytes } });
    expect(await tornIn(path, { offset: from })).toMatchObject({ frames: 0, torn: { at: from, bytes } });
  });
});

describe('replay$', () => {
  it('opens the file on subscription, and reads it again for each subscription', async () => {
    const path = fresh();
    const replay = replay$(path, { speed: Infinity });
    record([frameAt(1, 'a')], path);
    const all = () => lastValueFrom(replay.pipe(toArray()));
    expect(await all()).toHaveLength(1);
    expect(await all()).toHaveLength(1);
  });

  it('copies the bytes of each frame, so that no frame keeps a chunk in memory', async () => {
    const path = record([frameAt(1, 'x'.repeat(20_000)), frameAt(2, 'y')]);
    // A chunk has 256 KiB. The pool of Node for small buffers has 8 or 64 KiB and a little more.
    const poolBytes = 70_000;
    for (const event of await replayed(path))
      expect(event.type === 'frame' && event.data.buffer.byteLength).toBeLessThanOrEqual(poolBytes);
  });

  it('errors for a missing file and for an invalid line, without showing the line', async () => {
    await expect(replayed(folder.path('missing'))).rejects.toMatchObject({ name: 'RecordingError' });
    const path = record([frameAt(1)]);
    appendFileSync(path, '{"secret\n');
    expect(await replayed(path)).toHaveLength(1);
    record([], path);
    appendFileSync(path, '{"secret\n{}\n');
    await expect(replayed(path)).rejects.toThrow(
      /^The line at byte \d+ of .* isn't a valid line of a recording: it isn't JSON\. To skip it, continue from offset \d+\.$/,
    );
  });

  it.each([
    ['', {}, '`path` must be a path'],
    ['f', { speed: 0 }, '`speed` must be a number above 0, or Infinity, got 0'],
    ['f', { speed: '2' as unknown as number }, '`speed` must be a number above 0, or Infinity.'],
    ['f', { speed: NaN }, '`speed` must be a number above 0'],
    ['f', { offset: -1 }, '`offset` must be a number of bytes, 0 or more, got -1'],
    ['f', { offset: 1.5 }, '`offset` must be'],
    ['f', { onProgress: 1 as never }, '`onProgress` must be a function'],
    ['f', { scheduler: {} as never }, '`scheduler` must be a scheduler of RxJS'],
    ['f', { sped: 1 } as ReplayOptions, "`sped` doesn't exist: the options are speed, offset, onProgress, scheduler"],
  ])('checks its options when it is called: %j, %j', (path, options, message) => {
    expect(() => replay$(path, options)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});
