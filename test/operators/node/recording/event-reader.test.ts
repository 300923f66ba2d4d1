import { describe, expect, it } from '@jest/globals';
import { createEventReader } from '../../../../src/operators/node/recording/event-reader.js';
import { frameLine } from '../../../../src/operators/node/recording/recording-line.js';
import { frameAt } from '../support/recorded.js';

const lines = (text: string, offset = 0) => ({
  bytes: Buffer.from(text),
  path: 'f.1',
  fileOffset: offset,
  offset: offset + 100,
});
const line = (ms: number): string => frameLine(frameAt(ms));

describe('createEventReader', () => {
  it('returns the events of lines with the offset after each, then undefined', () => {
    const events = createEventReader();
    expect(events.next()).toBeUndefined();
    events.push(lines(line(1) + '{"type":"opened"}\n' + line(2)));
    expect(events.next()).toMatchObject({ receivedAt: 1, offset: 100 + line(1).length });
    expect(events.next()).toMatchObject({ receivedAt: 2, offset: 100 + line(1).length * 2 + 18 });
    expect(events.next()).toBeUndefined();
    events.push(lines(line(3), 500));
    expect(events.next()).toMatchObject({ receivedAt: 3, offset: 600 + line(3).length });
  });

  it('skips empty lines', () => {
    const events = createEventReader();
    events.push(lines(`\n${line(1)}\n\r\n${line(2)}\n`));
    expect(events.next()).toMatchObject({ receivedAt: 1, offset: 101 + line(1).length });
    expect(events.next()).toMatchObject({ receivedAt: 2, offset: 104 + line(1).length * 2 });
    expect(events.next()).toBeUndefined();
    events.push(lines('{"secret\n\n\n'));
    expect(events.next()).toBeUndefined();
  });

  it.each(['x\n', '\rx\n', 'xx\n'])('does not skip a short line that is not empty: %j', (bad) => {
    const events = createEventReader();
    events.push(lines(bad + line(1)));
    expect(() => events.next()).toThrow('The line at byte 0 of f.1 is not a valid line of a recording');
  });

  it('skips an invalid last line', () => {
    const events = createEventReader();
    events.push(lines(`${line(1)}\0\0}\n`));
    expect(events.next()).toMatchObject({ receivedAt: 1 });
    expect(events.next()).toBeUndefined();
    expect(events.next()).toBeUndefined();
  });

  it.each([
    ['in the same chunk', ['{"secret\n', line(2)]],
    ['in the next chunk', ['{"secret\n', '', line(2)]],
  ])('throws for an invalid line when another line follows %s', (_where, [bad = '', ...more]) => {
    const events = createEventReader();
    const pieces = more.length > 1 ? [line(1) + bad, ...more] : [line(1) + bad + more.join('')];
    const all = (): unknown[] => {
      const seen: unknown[] = [];
      for (const piece of pieces) {
        events.push(lines(piece));
        for (let event = events.next(); event !== undefined; event = events.next()) seen.push(event);
      }
      return seen;
    };
    expect(all).toThrow(
      expect.objectContaining({
        name: 'RecordingError',
        path: 'f.1',
        lineAt: line(1).length,
        message: `The line at byte ${line(1).length} of f.1 is not a valid line of a recording: it is not JSON. To skip it, continue from offset ${100 + line(1).length + 9}.`,
      }),
    );
  });

  it('throws for an invalid first line, with or without a line after it', () => {
    const events = createEventReader();
    events.push({ ...lines('{"batch":1}\n'), offset: 0 });
    expect(() => events.next()).toThrow(
      'The line at byte 0 of f.1 is not a valid line of a recording: it has no `type`. To skip it, continue from offset 12.',
    );
  });

  it('returns the position of an invalid last line, also when it is the first line after an offset', () => {
    const events = createEventReader();
    expect(events.invalidAt).toBeUndefined();
    events.push(lines('\0\n', 7));
    expect(events.next()).toBeUndefined();
    expect(events.invalidAt).toBe(107);
  });
});
