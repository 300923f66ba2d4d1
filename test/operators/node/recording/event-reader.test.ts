import { describe, expect, it } from '@jest/globals';
import { createEventReader } from '../../../../src/operators/node/recording/event-reader.js';
import { frameLine } from '../../../../src/operators/node/recording-line.js';
import { frameAt } from '../support/recorded.js';

const lines = (text: string, offset = 0) => ({
  bytes: Buffer.from(text),
  path: 'f.1',
  fileOffset: offset,
  offset: offset + 100,
});
const line = (ms: number): string => frameLine(frameAt(ms));

describe('createEventReader', () => {
  it('gives the events of lines with the offset behind each, then nothing', () => {
    const events = createEventReader();
    expect(events.next()).toBeUndefined();
    events.push(lines(line(1) + '{"type":"opened"}\n' + line(2)));
    expect(events.next()).toMatchObject({ receivedAt: 1, offset: 100 + line(1).length });
    expect(events.next()).toMatchObject({ receivedAt: 2, offset: 100 + line(1).length * 2 + 18 });
    expect(events.next()).toBeUndefined();
    events.push(lines(line(3), 500));
    expect(events.next()).toMatchObject({ receivedAt: 3, offset: 600 + line(3).length });
  });

  it('leaves empty lines out, wherever they are', () => {
    const events = createEventReader();
    events.push(lines(`\n${line(1)}\n\r\n${line(2)}\n`));
    expect(events.next()).toMatchObject({ receivedAt: 1, offset: 101 + line(1).length });
    expect(events.next()).toMatchObject({ receivedAt: 2, offset: 104 + line(1).length * 2 });
    expect(events.next()).toBeUndefined();
    events.push(lines('{"secret\n\n\n'));
    expect(events.next()).toBeUndefined();
  });

  it.each(['x\n', '\rx\n', 'xx\n'])('takes no short line for an empty one: %j', (bad) => {
    const events = createEventReader();
    events.push(lines(bad + line(1)));
    expect(() => events.next()).toThrow('The line at byte 0 of f.1 is not readable');
  });

  it('leaves a last line out that is not readable', () => {
    const events = createEventReader();
    events.push(lines(`${line(1)}\0\0}\n`));
    expect(events.next()).toMatchObject({ receivedAt: 1 });
    expect(events.next()).toBeUndefined();
    expect(events.next()).toBeUndefined();
  });

  it.each([
    ['in the same piece', ['{"secret\n', line(2)]],
    ['in the next piece', ['{"secret\n', '', line(2)]],
  ])('throws for a line that is not readable when another one follows %s', (_where, [bad = '', ...more]) => {
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

  it('throws for a first line that is not readable, whether or not another one follows', () => {
    const events = createEventReader();
    events.push({ ...lines('{"batch":1}\n'), offset: 0 });
    expect(() => events.next()).toThrow(
      'The line at byte 0 of f.1 is not a valid line of a recording: it has no `type`. To skip it, continue from offset 12.',
    );
  });

  it('tells where the last line begins that is not readable, also when a replay begins with it', () => {
    const events = createEventReader();
    expect(events.invalidAt).toBeUndefined();
    events.push(lines('\0\n', 7));
    expect(events.next()).toBeUndefined();
    expect(events.invalidAt).toBe(107);
  });
});
