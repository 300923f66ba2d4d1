import { describe, expect, it } from '@jest/globals';
import type { Ending } from '../../src/cli/delivery.js';
import type { CliEvent } from '../../src/cli/follow.js';
import { formatFor, jsonFormat, LineWriter } from '../../src/cli/output.js';
import { createTradeFeedError } from '../../src/index.js';
import { ending, expired, frameAt, start } from './support/events.js';
import { fakeContext, FakeOutput } from './support/fakes.js';

const text = frameAt(5, '{"名":"a\nb\u2028\x1b"}');
const binary = frameAt(6, '\x00\xff', { isBinary: true, connection: 2 });
const ended = (how: Ending): CliEvent => ({ type: 'ended', at: start, ending: how });
const tick: CliEvent = { type: 'tick', at: start };

describe('the format of payloads', () => {
  const plain = formatFor({}, fakeContext());
  const shown = formatFor({}, fakeContext({ env: { TERM: 'xterm' }, stdout: new FakeOutput({}) }));

  it('writes text unchanged with a newline, or base64, and cannot control a terminal', () => {
    expect(plain(text)).toStrictEqual(Buffer.concat([text.data, Buffer.from('\n')]));
    expect(shown(text)).toBe('{"名":"a␊b�␛"}\n');
    expect([plain(binary), shown(binary)]).toEqual(Array(2).fill(`${binary.data.toString('base64')}\n`));
    const others = [tick, ...ending(0, expired, 0), ended({ kind: 'failed', error: new Error('x') })];
    expect(others.map(plain)).toEqual(others.map(() => undefined));
  });
});

describe('the JSON format', () => {
  const parsed = (event: CliEvent): unknown => JSON.parse(jsonFormat(event) ?? 'null');

  it('includes the failure that stopped the feed, but no other ending', () => {
    const error = createTradeFeedError({ stage: 'ticket', status: 401 });
    const stopped = { type: 'stopped', at: start, failure: { code: 'invalid-api-key' } };
    expect(parsed(ended({ kind: 'failed', error }))).toMatchObject(stopped);
    const bug = ended({ kind: 'failed', error: new Error('odd') });
    expect(parsed(bug)).toMatchObject({ failure: { message: 'Error: odd' } });
    expect([ended({ kind: 'time-up' }), tick].map(jsonFormat)).toEqual([undefined, undefined]);
  });
});

/** A writer with room for 10 lines of 100 bytes after the 1024 bytes of the stream, and its reports. */
const slowWriter = (marker?: string, maxBytes = 1_000) => {
  const output = new FakeOutput();
  const reports: string[] = [];
  const writer = new LineWriter(output, {
    maxBytes,
    onDropping: () => reports.push('dropping'),
    onDropped: (lines) => {
      reports.push(`dropped ${lines}`);
      return marker;
    },
  });
  const write = (from: number, to: number): void => {
    for (let n = from; n < to; n += 1) writer.write(`${String(n).padStart(99, '.')}\n`);
  };
  const numbers = (): number[] =>
    output.text
      .split('\n')
      .filter(Boolean)
      .map((each) => Number(each.replaceAll('.', '')));
  return { output, writer, reports, write, numbers };
};

const upTo = (count: number): number[] => [...Array(count).keys()];

describe('the writer of lines', () => {
  it('keeps lines in order while they wait for a slow reader', async () => {
    const { output, writer, reports, write, numbers } = slowWriter(undefined, 1_000_000);
    output.block();
    write(0, 5_000);
    output.prependOnceListener('drain', () => output.block());
    output.unblock();
    await output.until(/11\n$/);
    expect(numbers()).toStrictEqual(upTo(12));
    output.unblock();
    await writer.flush();
    expect(numbers()).toStrictEqual(upTo(5_000));
    expect([writer.dropped, reports]).toStrictEqual([0, []]);
  });

  it('drops the oldest lines when the queue is full, and reports when that starts and ends', async () => {
    const { output, writer, reports, write, numbers } = slowWriter();
    output.block();
    write(0, 40);
    expect(reports).toStrictEqual(['dropping']);
    output.unblock();
    await writer.flush();
    expect(numbers()).toStrictEqual([...upTo(11), ...upTo(40).slice(30)]);
    expect(writer.dropped).toBe(19);
    expect(reports).toStrictEqual(['dropping', 'dropped 19']);
  });

  it('writes a marker in place of the dropped lines', async () => {
    const { output, writer, reports, write, numbers } = slowWriter('-7777\n');
    for (const round of [1, 2]) {
      output.block();
      write(0, 30);
      output.unblock();
      await output.until(new RegExp(`(-7777\\n[.0-9\\n]*29\\n[^-]*){${round}}$`));
    }
    await writer.flush();
    const once = [...upTo(11), -7777, ...upTo(30).slice(20)];
    expect(numbers()).toStrictEqual([...once, ...once]);
    expect(reports).toStrictEqual(['dropping', 'dropped 9', 'dropping', 'dropped 9']);
  });

  it('drops a line that is longer than the queue, and no other', async () => {
    const { output, writer, write, numbers } = slowWriter();
    output.block();
    write(0, 12);
    writer.write('x'.repeat(1_001));
    write(12, 13);
    output.unblock();
    await writer.flush();
    expect(numbers()).toStrictEqual(upTo(13));
    expect(writer.dropped).toBe(1);
  });

  it('drops the remaining lines when flushing takes too long', async () => {
    const { output, writer, reports, write } = slowWriter();
    output.block();
    write(0, 16);
    await writer.flush(1);
    expect(writer.dropped).toBe(5);
    expect(reports).toStrictEqual(['dropping', 'dropped 5']);
    output.unblock();
  });

  it('does not wait for a reader that has exited, before or during the flush', async () => {
    const { output, writer, write } = slowWriter();
    output.on('error', () => undefined);
    output.block();
    write(0, 16);
    const flushed = writer.flush();
    // Node doesn't destroy stdout after an error, so neither `drain` nor `close` follows.
    output.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await flushed;
    await writer.flush();
    expect([writer.dropped, output.destroyed]).toStrictEqual([5, false]);
  });
});
