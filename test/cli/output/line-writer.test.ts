import { describe, expect, it } from '@jest/globals';
import { lineQueue, type LineWriter, lineWriter } from '../../../src/cli/output/line-writer.js';
import { FakeOutput } from '../support/fake-output.js';

interface SlowWriter {
  readonly output: FakeOutput;
  readonly writer: LineWriter;
  readonly reports: string[];
}

/** A writer with room for 10 lines of 100 bytes after the 1024 bytes of the stream, and its reports. */
const slowWriter = (marker?: string, maxBytes = 1_000): SlowWriter => {
  const output = new FakeOutput();
  const reports: string[] = [];
  const writer = lineWriter(output, {
    maxBytes,
    onDropping: () => reports.push('dropping'),
    onDropped: (lines) => {
      reports.push(`dropped ${lines}`);
      return marker;
    },
  });
  return { output, writer, reports };
};

const line = (n: number): string => `${String(n).padStart(99, '.')}\n`;
const numbers = ({ text }: FakeOutput): number[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((each) => Number(each.replaceAll('.', '')));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe('lineWriter', () => {
  it('writes text and bytes immediately', async () => {
    const { output, writer, reports } = slowWriter();
    writer.write('text\n');
    writer.write(Buffer.from('bytes\n'));
    await writer.flush();
    expect(output.text).toBe('text\nbytes\n');
    expect([writer.dropped, reports]).toStrictEqual([0, []]);
  });

  it('stores lines for a slow reader, in order', async () => {
    const { output, writer, reports } = slowWriter();
    output.block();
    for (const n of upTo(20)) writer.write(line(n));
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual(upTo(20));
    expect(reports).toStrictEqual([]);
  });

  it('does not wait for a reader that exited while lines were stored', async () => {
    const { output, writer } = slowWriter();
    output.on('error', () => undefined);
    output.block();
    for (const n of upTo(20)) writer.write(line(n));
    // Node does not destroy stdout after an error, so there is neither `drain` nor `close`.
    output.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await writer.flush();
    expect(output.destroyed).toBe(false);
  });

  it('writes as much as the reader accepts, and stores the rest', async () => {
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

  it('drops the oldest lines when the queue is full, and reports the beginning and the end', async () => {
    const { output, writer, reports } = slowWriter();
    output.block();
    for (const n of upTo(40)) writer.write(line(n));
    expect(reports).toStrictEqual(['dropping']);
    output.unblock();
    await writer.flush();
    expect(numbers(output)).toStrictEqual([...upTo(11), ...upTo(40).slice(30)]);
    expect(writer.dropped).toBe(19);
    expect(reports).toStrictEqual(['dropping', 'dropped 19']);
  });

  it('writes a marker in place of the dropped lines', async () => {
    const { output, writer, reports } = slowWriter('-7777\n');
    for (const round of [1, 2]) {
      output.block();
      for (const n of upTo(30)) writer.write(line(n));
      output.unblock();
      await output.until(new RegExp(`(-7777\\n[.0-9\\n]*29\\n[^-]*){${round}}$`));
    }
    await writer.flush();
    const once = [...upTo(11), -7777, ...upTo(30).slice(20)];
    expect(numbers(output)).toStrictEqual([...once, ...once]);
    expect(reports).toStrictEqual(['dropping', 'dropped 9', 'dropping', 'dropped 9']);
  });

  it('drops a line that is longer than the queue', async () => {
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

  it('drops the remaining lines when the time for the flush is over', async () => {
    const { output, writer, reports } = slowWriter();
    output.block();
    for (const n of upTo(16)) writer.write(line(n));
    await writer.flush(1);
    expect(writer.dropped).toBe(5);
    expect(reports).toStrictEqual(['dropping', 'dropped 5']);
    output.unblock();
  });

  it('does not wait for a broken stream', async () => {
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
  it('returns lines in order, and counts their bytes', () => {
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
