import { describe, expect, it } from '@jest/globals';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { crc32, gzipSync } from 'node:zlib';
import { feedLog, type LogRecord, verifyLog } from '../../src/log/index.js';
import { disconnected, gapOf } from '../operators/stream.js';
import { isAllCases } from '../support/cases.js';
import { frame, opened, path, read, segments, short, texts, textsOf, write } from './support.js';

const flipped = (bytes: Buffer, bit: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[bit >> 3]! ^= 1 << (bit & 7);
  return changed;
};
/** All of them take a minute: otherwise one of each byte. */
const bitsOf = ({ length }: Buffer): readonly number[] =>
  Array.from({ length: length * 8 }, (_, bit) => bit).filter((bit) => isAllCases || bit % 8 === (bit >> 3) % 8);
const damagedGaps = (records: readonly LogRecord[]) =>
  records.filter((each) => each.type === 'gap' && each.offset === undefined && each.failure.code === 'log-damaged');

/** Writes two segments, of which the first one is then damaged, and returns what the log has. */
const stored = async () => {
  await write([opened(), frame(0), frame(1), disconnected(1_002)]);
  await write([opened(2_000), frame(2)]);
  return { first: segments()[0]!, records: short(await read()) };
};
/** What is certainly wrong with what a reader got: a changed record, or a missing one without a gap. */
const wrongIn = (records: readonly LogRecord[], all: readonly string[]): readonly string[] => {
  const got = short(records);
  const changed = got.filter((each) => !all.includes(each) && !each.startsWith('-:'));
  const missing = all.filter((each) => !got.includes(each));
  return missing.length > 0 && damagedGaps(records).length === 0 ? [...changed, ...missing] : changed;
};

// A busy machine takes much longer than the few seconds of an idle one.
const limitMs = 300_000;

describe('a single bit flip', () => {
  it(
    'in any line of a file becomes a gap, never a changed or missing record',
    async () => {
      const { first, records } = await stored();
      const bytes = readFileSync(first);
      for (const bit of bitsOf(bytes)) {
        writeFileSync(first, flipped(bytes, bit));
        expect([bit, wrongIn(await read(), records)]).toEqual([bit, []]);
        if (bit % 5 > 0) continue;
        expect([bit, (await verifyLog(path())).damaged.length > 0]).toEqual([bit, true]);
      }
    },
    limitMs,
  );

  it(
    'in a compressed file becomes a gap with the number of its frames',
    async () => {
      const { first, records } = await stored();
      const bytes = gzipSync(readFileSync(first));
      rmSync(first);
      let losses = 0;
      for (const bit of bitsOf(bytes)) {
        writeFileSync(`${first}.gz`, flipped(bytes, bit));
        const got = await read();
        expect([bit, wrongIn(got, records)]).toEqual([bit, []]);
        const [gap] = damagedGaps(got);
        if (gap === undefined) continue;
        losses += 1;
        expect([bit, gap]).toEqual([bit, expect.objectContaining({ missed: 2 })]);
        expect((await verifyLog(path())).damaged).not.toEqual([]);
      }
      expect(losses).toBeGreaterThan(bytes.length * (isAllCases ? 7 : 0.8));
    },
    limitMs,
  );

  it('in the last file becomes a gap as well, even if it hits the last newline', async () => {
    await write([opened(), frame(0), frame(1)]);
    const [last] = segments();
    const all = short(await read());
    const bytes = readFileSync(last!);
    for (const bit of bitsOf(bytes).slice(-300)) {
      writeFileSync(last!, flipped(bytes, bit));
      expect([bit, wrongIn(await read(), all)]).toEqual([bit, []]);
    }
    await expect(read({ onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt', path: last });
    const { damaged } = await verifyLog(path());
    expect(damaged).toEqual([{ path: last, line: 4, lineAt: expect.any(Number), problem: 'record 2 is missing' }]);
  });

  it('at the end of a file has the exact number, because the next header knows it', async () => {
    const { first } = await stored();
    const bytes = readFileSync(first);
    const end = bytes.lastIndexOf(0x0a);
    const secondFrame = bytes.indexOf('"n\\":1');
    for (const change of [{ at: end }, { at: secondFrame }]) {
      const changed = Buffer.from(bytes);
      changed[change.at]! ^= 1;
      writeFileSync(first, change.at === end ? changed : changed.subarray(0, bytes.indexOf('{"offset":3')));
      const [gap] = damagedGaps(await read());
      expect(gap).toMatchObject({ missed: change.at === end ? 0 : 1 });
      await expect(read({ onDamage: 'error' })).rejects.toMatchObject({ code: 'log-corrupt' });
    }
  });
});

describe('the checksum of a line', () => {
  const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n');

  it('is the last member of the header and of each record, so that other programs can read the rest', async () => {
    const text = '{"n":"é🙂"}';
    const other = Object.assign(frame(0), { data: Buffer.from(text) });
    await write([opened(), other, { ...gapOf(1_001, 1_002), missed: 7 }]);
    const lines = linesOf(segments()[0]!);
    expect(lines).toHaveLength(4);
    for (const line of lines) {
      const fields = JSON.parse(line) as Record<string, unknown>;
      expect(Object.keys(fields).at(-1)).toBe('crc');
      expect(fields['crc']).toBe(crc32(line.slice(0, line.lastIndexOf(',"crc":'))));
    }
    for (const record of await read()) expect(record).not.toHaveProperty('crc');
    expect(textsOf(await read())).toEqual([text]);
  });

  it('may not be missing in a log, but a file of another program has none', async () => {
    await write([opened(), frame(0), frame(1)]);
    const [file] = segments();
    const lines = linesOf(file!);
    const bare = lines.map((line) => line.replace(/,"crc":.*/, '}'));
    writeFileSync(file!, `${[lines[0], lines[1], bare[2], lines[3]].join('\n')}\n`);
    expect(short(await read())).toEqual(['0:opened', '-:gap log-damaged', '2:{"n":1}']);
    writeFileSync(path('plain.ndjson'), `${bare.slice(1).join('\n')}\n`);
    expect(textsOf(await read({}, path('plain.ndjson')))).toEqual(texts(0, 2));
    expect(await verifyLog(path('plain.ndjson'))).toMatchObject({ damaged: [], frames: 2 });
  });

  it('counts in a file as well, if a line of it has one', async () => {
    await write([opened(), frame(0), frame(1)]);
    const lines = linesOf(segments()[0]!);
    writeFileSync(path('copy.ndjson'), `${lines.slice(1).join('\n').replace('{\\"n\\":0}', '{\\"n\\":8}')}\n`);
    expect(short(await read({}, path('copy.ndjson')))).toEqual(['0:opened', '-:gap log-damaged', '2:{"n":1}']);
    expect((await verifyLog(path('copy.ndjson'))).damaged).toMatchObject([
      { line: 2, problem: 'its checksum is wrong' },
    ]);
  });
});

it('verifyLog names records that are missing between two files', async () => {
  await write([opened(), frame(0)]);
  await write([opened(2_000), frame(1)]);
  await write([opened(3_000), frame(2)]);
  const [first, second] = segments();
  rmSync(second!);
  const { damaged } = await verifyLog(path());
  expect(damaged).toEqual([
    {
      path: first,
      line: 4,
      lineAt: readFileSync(first!).length,
      problem: expect.stringMatching(/^records 2 to \d are missing$/),
    },
  ]);
});

it('a reader that waits says at once that lines which it has not read were cut off', async () => {
  await write([opened(), frame(0), frame(1)]);
  const [file] = segments();
  const bytes = readFileSync(file!);
  writeFileSync(file!, bytes.subarray(0, bytes.lastIndexOf('{"offset":2')));
  for await (const records of feedLog(path()).read()) {
    const gap = records.find(({ type }) => type === 'gap');
    if (gap === undefined) continue;
    expect(gap).toMatchObject({ failure: { code: 'log-damaged' }, position: { offset: 3 } });
    break;
  }
});
