import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  createServerSentEventReader,
  eventsOf,
  readHello,
  type ServerSentEvent,
} from '../../src/browser/relay-stream.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';
import { opened, requested } from '../operators/stream.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const read = (...chunks: readonly Uint8Array[]): ServerSentEvent[] => chunks.flatMap(createServerSentEventReader());

/** Splits bytes at the positions. */
const splitAt = (whole: Uint8Array, places: readonly number[]): Uint8Array[] => {
  const ends = [...new Set(places.map((place) => place % (whole.length + 1)))].sort((a, b) => a - b);
  return [...ends, whole.length].map((end, n) => whole.subarray(ends[n - 1] ?? 0, end));
};

const event = (lines: readonly string[], { type = '', id = '' } = {}): ServerSentEvent => ({
  event: type,
  id,
  data: lines,
});

describe('createServerSentEventReader', () => {
  it.each<[string, string, ServerSentEvent[]]>([
    ['one event', 'data: a\n\n', [event(['a'])]],
    ['all fields, in any order', 'id: 1\ndata: a\nevent: hello\n\n', [event(['a'], { type: 'hello', id: '1' })]],
    ['several lines', 'data: a\ndata: b\ndata\ndata:\n\n', [event(['a', 'b', '', ''])]],
    ['at most one space after the colon', 'data:a\ndata: b\ndata:  c\n\n', [event(['a', 'b', ' c'])]],
    ['a value with colons', 'data: {"a":"b: c"}\n\n', [event(['{"a":"b: c"}'])]],
    ['no event from comments', ': heartbeat\n\n:\n\ndata: a\n: in between\ndata: b\n\n', [event(['a', 'b'])]],
    ['no event from other fields', 'retry: 5\ndata: a\ndatas: b\n data: c\nDATA: d\n\n', [event(['a'])]],
    ['no event without data', 'event: x\nid: 1\n\ndata: a\n\n', [event(['a'])]],
    [
      'events with several blank lines between them',
      '\n\n\ndata: a\n\n\n\n\ndata: b\n\n',
      [event(['a']), event(['b'])],
    ],
    [
      'lines that end with CRLF',
      'event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n',
      [event(['a'], { type: 'x' }), event(['b'])],
    ],
    [
      'other Unicode line separators as part of a line',
      'data: a\u2028b\u2029c\u0085d\n\n',
      [event(['a\u2028b\u2029c\u0085d'])],
    ],
    ['no character from a byte order mark before the first line', '\ufeffdata: a\n\n', [event(['a'])]],
    ['a byte order mark anywhere else as part of a line', 'data: \ufeffa\n\n', [event(['\ufeffa'])]],
    ['no event that is incomplete at the end', 'data: a\n\ndata: b\n', [event(['a'])]],
    ['no event from no bytes', '', []],
  ])('reads %s', (_what, text, events) => {
    expect(read(bytes(text))).toEqual(events);
    expect(read(...splitAt(bytes(text), [...bytes(text).keys()]))).toEqual(events);
  });

  it('reads the same events for any split of the bytes', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: character }), fc.constantFrom('\u2028', '\ufeff', '😀'));
    const line = text.map((value) => value.replace(/[\r\n\ud800-\udfff]/gu, ''));
    const written = fc.record({
      type: fc.constantFrom('', 'hello', 'stop'),
      id: fc.stringMatching(/^[\w.]{0,9}$/),
      lines: fc.array(line, { minLength: 1, maxLength: 4 }),
      comment: fc.boolean(),
    });
    const eol = fc.constantFrom('\n', '\r\n');
    fc.assert(
      fc.property(fc.array(written), eol, fc.array(fc.nat(2_000)), (events, end, places) => {
        const blocks = events.map(({ type, id, lines, comment }) =>
          [
            ...(comment ? [': heartbeat', ''] : []),
            ...(type ? [`event: ${type}`] : []),
            ...(id ? [`id: ${id}`] : []),
            ...lines.map((each) => `data: ${each}`),
            '',
            '',
          ].join(end),
        );
        const expected = events.map(({ type, id, lines }) => event(lines, { type, id }));
        expect(read(...splitAt(bytes(blocks.join('')), places))).toEqual(expected);
      }),
      { numRuns: cases(500) },
    );
  });

  it('returns each event as soon as it is complete', () => {
    const reader = createServerSentEventReader();
    const seen: string[] = [];
    for (const [chunk, sofar] of [
      ['data: a', 0],
      ['\n', 0],
      ['\ndata: b\n\ndata', 2],
      [': c\n\n', 3],
    ] as const) {
      seen.push(...reader(bytes(chunk)).flatMap(({ data }) => data));
      expect(seen).toHaveLength(sofar);
    }
  });

  it('reads a long message in linear time', () => {
    const whole = bytes(`data: ${'x'.repeat(16_000_000)}\n\n`);
    const parts = Array.from({ length: Math.ceil(whole.length / 16_384) }, (_, n) =>
      whole.subarray(n * 16_384, (n + 1) * 16_384),
    );
    const before = process.cpuUsage();
    const [only] = read(...parts);
    const { user, system } = process.cpuUsage(before);
    expect(only?.data[0]).toHaveLength(16_000_000);
    // Measures CPU time, because other processes may be busy: 0.05 s. Searching the whole text each time takes 15 s.
    expect(user + system).toBeLessThan(2_000_000);
  });
});

const lines = [requested(1), opened(2)].map((event) => JSON.stringify(event));

describe('eventsOf', () => {
  it('reads the events of a message, with the clock of this machine', () => {
    expect(eventsOf(lines, 0)).toEqual([requested(1), opened(2)]);
    expect(eventsOf(lines, 5)).toEqual([requested(6), opened(7)]);
  });

  it('raises the times of lifecycle events to that of the last event of the page itself', () => {
    expect(eventsOf(lines, 0, 2)).toEqual([requested(2), opened(2)]);
  });

  it('ignores unknown events', () => {
    expect(eventsOf(['{"type":"new"}', lines[1]!], 0)).toEqual([opened(2)]);
  });

  it.each([[[lines[0]!, 'garbage']], [['', '']]])('throws for invalid lines: %j', (sent) => {
    expect(() => eventsOf(sent, 0)).toThrow();
  });
});

describe('readHello', () => {
  it('reads the clock of the relay', () => {
    expect(readHello(['{"at":5,"more":1}'])).toBe(5);
  });

  it.each(['garbage', '{}', '{"at":"5"}', 'null'])('throws for an invalid message: %s', (line) => {
    expect(() => readHello([line])).toThrow();
  });
});
