import { describe, expect, test } from '@jest/globals';
import { lineQueue, type LineWriter, lineWriter } from '../../../src/cli/output/line-writer.js';
import { FakeOutput } from '../support/fake-output.js';

interface Told {
  readonly output: FakeOutput;
  readonly writer: LineWriter;
  readonly said: string[];
}

/** A writer with room for 10 lines of 100 bytes behind the stream's own 1024 bytes, and what it says. */
const slowWriter = (marker?: string, maxBytes = 1_000): Told => {
  const output = new FakeOutput();
  const said: string[] = [];
  const writer = lineWriter(output, {
    maxBytes,
    onDropping: () => said.push('dropping'),
    onDropped: (lines) => {
      said.push(`dropped ${lines}`);
      return marker;
    },
  });
  return { output, writer, said };
};

const line = (n: number): string => `${String(n).padStart(99, '.')}\n`;
const numbers = ({ text }: FakeOutput): number[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((each) => Number(each.replaceAll('.', '')));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe('lineWriter', () => {
  test('writes lines of either kind as they come', async () => {
    const { output, writer, said } = slowWriter();
    writer.write('text\n');
    writer.write(Buffer.from('bytes\n'));
    await writer.flush();
    expect(output.text).toBe('text\nbytes\n');
    expect([writer.dropped, said]).toStrictEqual([0, []]);
  });

  test('keeps lines for a slow reader, in their order', async () => {
    const { output, writer, said } = slowWriter();
    output.block();
    for (const n of upTo(20)) writer.write(line(n));
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual(upTo(20));
    expect(said).toStrictEqual([]);
  });

  test('writes as much as the reader takes, and keeps the rest', async () => {
    const { output, writer } = slowWriter(undefined, 10_000);
    output.block();
    for (const n of upTo(60)) writer.write(line(n));
    output.prependOnceListener('drain', () => output.block());
    output.unblock();
    await output.until(/11\n$/);
    expect(numbers(output)).toStrictEqual(upTo(12));
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual(upTo(60));
    expect(writer.dropped).toBe(0);
  });

  test('drops the oldest lines beyond its bound, and tells so when it begins and when it is over', async () => {
    const { output, writer, said } = slowWriter();
    output.block();
    for (const n of upTo(40)) writer.write(line(n));
    expect(said).toStrictEqual(['dropping']);
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual([...upTo(11), ...upTo(40).slice(30)]);
    expect(writer.dropped).toBe(19);
    expect(said).toStrictEqual(['dropping', 'dropped 19']);
  });

  test('writes a marker where the dropped lines were', async () => {
    const { output, writer, said } = slowWriter('-7777\n');
    for (const round of [1, 2]) {
      output.block();
      for (const n of upTo(30)) writer.write(line(n));
      output.unblock();
      await output.until(new RegExp(`(-7777\\n[.0-9\\n]*29\\n[^-]*){${round}}$`));
    }
    await writer.flush();
    const once = [...upTo(11), -7777, ...upTo(30).slice(20)];
    expect(numbers(output)).toStrictEqual([...once, ...once]);
    expect(said).toStrictEqual(['dropping', 'dropped 9', 'dropping', 'dropped 9']);
  });

  test('drops a line that is longer than its bound', async () => {
    const { output, writer } = slowWriter();
    output.block();
    for (const n of upTo(11)) writer.write(line(n));
    writer.write('x'.repeat(1_001));
    writer.write(line(11));
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual(upTo(12));
    expect(writer.dropped).toBe(1);
  });

  test('gives up what is left when the time for the end is over', async () => {
    const { output, writer, said } = slowWriter();
    output.block();
    for (const n of upTo(16)) writer.write(line(n));
    await writer.flush(1);
    expect(writer.dropped).toBe(5);
    expect(said).toStrictEqual(['dropping', 'dropped 5']);
    output.unblock();
  });

  test('has no more to wait for when the stream breaks, or is broken', async () => {
    const { output, writer } = slowWriter();
    output.on('error', () => undefined);
    output.block();
    for (const n of upTo(16)) writer.write(line(n));
    const flushed = writer.flush();
    output.destroy(new Error('gone'));
    await flushed;
    await writer.flush();
    expect(writer.dropped).toBe(5);
  });
});

describe('lineQueue', () => {
  test('gives lines back in their order, and knows how much they are', () => {
    const queue = lineQueue();
    for (const n of upTo(5_000)) queue.push(line(n));
    expect([queue.length, queue.bytes]).toStrictEqual([5_000, 500_000]);
    expect(upTo(4_000).map(() => queue.shift())).toStrictEqual(upTo(4_000).map(line));
    expect([queue.length, queue.bytes]).toStrictEqual([1_000, 100_000]);
    queue.push(Buffer.from('last'));
    for (const n of upTo(1_000)) expect(queue.shift()).toBe(line(4_000 + n));
    expect(queue.shift()).toStrictEqual(Buffer.from('last'));
    expect([queue.length, queue.bytes, queue.shift()]).toStrictEqual([0, 0, undefined]);
  });
});
