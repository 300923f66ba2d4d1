import { describe, expect, it } from '@jest/globals';
import { timer } from 'rxjs';
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
const slowWriter = (isJson = false, maxBytes = 1_000) => {
  const context = fakeContext();
  const { stdout: output, stderr } = context;
  const writer = new LineWriter(context, isJson, maxBytes);
  const write = (from: number, to: number): void => {
    for (let n = from; n < to; n += 1) writer.write(`${String(n).padStart(99, '.')}\n`);
  };
  /** The numbers of the lines, and how many were dropped as a negative number. */
  const numbers = (): number[] =>
    output.text
      .split('\n')
      .filter(Boolean)
      .map((each) => -Number(/"lines":(\d+)/.exec(each)?.[1] ?? -Number(each.replaceAll('.', ''))));
  const reports = () => [...stderr.text.matchAll(/too slow: the oldest|\d+ lines dropped/g)].map(([words]) => words);
  return { output, writer, reports, write, numbers };
};
const dropping = 'too slow: the oldest';

const upTo = (count: number): number[] => [...Array(count).keys()];

describe('the writer of lines', () => {
  it('keeps lines in order while they wait for a slow reader', async () => {
    const { output, writer, reports, write, numbers } = slowWriter(false, 1_000_000);
    output.block();
    write(0, 5_000);
    output.prependOnceListener('drain', () => output.block());
    output.unblock();
    await output.until(/11\n$/);
    expect(numbers()).toStrictEqual(upTo(12));
    output.unblock();
    await writer.flush();
    expect(numbers()).toStrictEqual(upTo(5_000));
    expect([writer.dropped, reports()]).toStrictEqual([0, []]);
  });

  it('drops the oldest lines when the queue is full, and reports when that starts and ends', async () => {
    const { output, writer, reports, write, numbers } = slowWriter();
    output.block();
    write(0, 40);
    expect(reports()).toStrictEqual([dropping]);
    output.unblock();
    await writer.flush();
    expect(numbers()).toStrictEqual([...upTo(11), ...upTo(40).slice(30)]);
    expect(writer.dropped).toBe(19);
    expect(reports()).toStrictEqual([dropping, '19 lines dropped']);
  });

  it('writes a marker in place of the dropped lines of JSON', async () => {
    const { output, writer, reports, write, numbers } = slowWriter(true);
    for (const round of [1, 2]) {
      output.block();
      write(0, 30);
      output.unblock();
      await output.until(new RegExp(`("dropped".*\\n[.0-9\\n]*29\\n[^"]*[^]*){${round}}$`));
    }
    await writer.flush();
    const once = [...upTo(11), -9, ...upTo(30).slice(20)];
    expect(numbers()).toStrictEqual([...once, ...once]);
    expect(reports()).toStrictEqual([dropping, '9 lines dropped', dropping, '9 lines dropped']);
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
    await writer.flush(timer(1));
    expect(writer.dropped).toBe(5);
    expect(reports()).toStrictEqual([dropping, '5 lines dropped']);
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
