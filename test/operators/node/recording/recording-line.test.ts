import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import { jsonFormat } from '../../../../src/cli/output/format.js';
import { Frame, ReplayedFrame, TradeFeedError } from '../../../../src/index.js';
import {
  frameLine,
  gapLine,
  isRecordingStart,
  readLine,
  timeIn,
} from '../../../../src/operators/node/recording/recording-line.js';
import { essence, frameAt, gapBetween, sequences } from '../support/recorded.js';
import { cases } from '../../../support/cases.js';

const read = (text: string) => readLine(Buffer.from(text), 7);

describe('a line', () => {
  it('of any frame or gap is one line that is read as an equal frame or gap', () => {
    fc.assert(
      fc.property(sequences, (events) => {
        for (const event of events) {
          const line = event.type === 'frame' ? frameLine(event) : gapLine(event);
          expect(line.indexOf('\n')).toBe(line.length - 1);
          expect(essence(read(line) as typeof event)).toEqual(essence(event));
        }
      }),
      { numRuns: cases(100) },
    );
  });

  it('equals the line of `listen --json`', () => {
    fc.assert(
      fc.property(sequences, (events) => {
        for (const event of events) {
          expect(event.type === 'frame' ? frameLine(event) : gapLine(event)).toBe(jsonFormat(event));
        }
      }),
      { numRuns: cases(100) },
    );
  });

  it('contains a text payload as text, and a binary or invalid UTF-8 payload as base64', () => {
    expect(JSON.parse(frameLine(frameAt(5, '{"n":"é"}')))).toEqual({
      type: 'frame',
      feed: 'market',
      connection: 1,
      receivedAt: 5,
      isBinary: false,
      encoding: 'utf8',
      data: '{"n":"é"}',
    });
    expect(frameLine(frameAt(5, Buffer.from('text')))).toContain(
      '"isBinary":true,"encoding":"base64","data":"dGV4dA=="',
    );
    const broken = new Frame('raw', Buffer.of(0xff), false, 5, 1);
    expect(frameLine(broken)).toContain('"isBinary":false,"encoding":"base64","data":"/w=="');
  });

  it('of a relayed frame equals the line of the original frame', () => {
    fc.assert(
      fc.property(sequences, (events) => {
        for (const event of events) {
          if (event.type !== 'frame') continue;
          const { feed, data, isBinary, receivedAt, connection } = event;
          const relayed = new Frame<Uint8Array>(feed, new Uint8Array(data), isBinary, receivedAt, connection);
          expect(frameLine(relayed)).toBe(frameLine(event));
        }
      }),
      { numRuns: cases(100) },
    );
    const part = new Uint8Array([1, 2, 0xff, 4]).subarray(1, 3);
    expect(frameLine(new Frame<Uint8Array>('raw', part, true, 5, 1))).toContain('"data":"Av8="');
  });

  it('of a gap contains only the fields of the gap', () => {
    const gap = { ...gapBetween(1, 3), offset: 99 };
    expect(Object.keys(JSON.parse(gapLine(gap)) as object)).toEqual(['type', 'from', 'to', 'durationMs', 'failure']);
  });

  it.each([
    new Frame('market', Buffer.from('x'), false, NaN, 1),
    new Frame('market', Buffer.from('x'), false, 1, Infinity),
    new Frame('other' as 'raw', Buffer.from('x'), false, 1, 1),
  ])('is not written for a frame that no reader accepts', (frame) => {
    expect(() => frameLine(frame)).toThrow(TypeError);
  });
});

describe('readLine', () => {
  const frame = (changes: object): string =>
    JSON.stringify({ ...(JSON.parse(frameLine(frameAt(5))) as object), ...changes });
  const gap = (changes: object, failure: object = {}): string => {
    const fields = JSON.parse(gapLine(gapBetween(1, 3))) as { failure: object };
    return JSON.stringify({ ...fields, failure: { ...fields.failure, ...failure }, ...changes });
  };

  it('returns instances of the frame and failure classes, with the offset after the line', () => {
    const replayed = read(frame({}));
    expect(replayed).toBeInstanceOf(ReplayedFrame);
    expect(replayed).toBeInstanceOf(Frame);
    expect(replayed).toMatchObject({ type: 'frame', offset: 7 });
    const event = read(gap({}));
    expect(event).toMatchObject({ type: 'gap', from: 1, to: 3, durationMs: 2, offset: 7 });
    expect(event?.type === 'gap' && event.failure).toBeInstanceOf(TradeFeedError);
    expect(event?.type === 'gap' && event.failure.message).toBe(gapBetween(1, 3).failure.message);
  });

  it('skips lines of other types', () => {
    expect(read('{"type":"opened","at":1,"feed":"market","connection":1}')).toBeUndefined();
    expect(read('{"type":"of the future"}')).toBeUndefined();
  });

  it('accepts a failure with a code of a newer version, and without optional fields', () => {
    const event = read(gap({}, { code: 'newer', status: 'x', reason: 1, endedAt: null }));
    expect(event?.type === 'gap' && event.failure).toMatchObject({ code: 'newer', uptimeMs: 0 });
    expect(event?.type === 'gap' && Object.keys(event.failure)).not.toContain('status');
    expect(event?.type === 'gap' && Object.keys(event.failure)).not.toContain('reason');
  });

  it.each([
    ['{"secret', 'it is not JSON'],
    ['', 'it is not JSON'],
    ['"secret"', 'it is not a JSON object'],
    ['null', 'it is not a JSON object'],
    ['{"batch":1}', 'it has no `type`'],
    ['[]', 'it has no `type`'],
    [frame({ feed: 'secret' }), 'a field of the frame is missing or wrong'],
    [frame({ connection: '1' }), 'a field of the frame is missing or wrong'],
    [frame({ receivedAt: null }), 'a field of the frame is missing or wrong'],
    [frame({ isBinary: 0 }), 'a field of the frame is missing or wrong'],
    [frame({ encoding: 'hex' }), 'a field of the frame is missing or wrong'],
    [frame({ data: undefined }), 'a field of the frame is missing or wrong'],
    [gap({ from: null }), 'a field of the gap is missing or wrong'],
    [gap({ to: null }), 'a field of the gap is missing or wrong'],
    [gap({ durationMs: '2' }), 'a field of the gap is missing or wrong'],
    [gap({ failure: null }), 'a field of the failure is missing or wrong'],
    [gap({ failure: 'secret' }), 'a field of the failure is missing or wrong'],
    [gap({}, { code: 1 }), 'a field of the failure is missing or wrong'],
    [gap({}, { message: null }), 'a field of the failure is missing or wrong'],
    [gap({}, { advice: null }), 'a field of the failure is missing or wrong'],
    [gap({}, { stage: 'secret' }), 'a field of the failure is missing or wrong'],
    [gap({}, { verdict: 'secret' }), 'a field of the failure is missing or wrong'],
    [gap({}, { previous: {} }), 'a field of the failure is missing or wrong'],
  ])('reports %s without showing it', (text, message) => {
    expect(() => read(text)).toThrow(new TypeError(message));
  });

  it('refuses bytes that are not UTF-8', () => {
    const line = Buffer.from(frame({ data: 'xyz' }));
    line[line.length - 3] = 0xff;
    expect(() => readLine(line, 0)).toThrow(new TypeError('it is not UTF-8'));
  });
});

it('timeIn returns the time of a line', () => {
  expect(timeIn(Buffer.from(frameLine(frameAt(5))))).toBe(5);
  expect(timeIn(Buffer.from(gapLine(gapBetween(1, 3))))).toBe(3);
  expect(timeIn(Buffer.from('{"type":"opened","at":4}'))).toBe(4);
  expect(timeIn(Buffer.from('{"type":"?"}'))).toBeUndefined();
});

it('isRecordingStart accepts only the start of a line of a recording, complete or torn', () => {
  for (const start of ['{"type":"frame","feed"', '{"type":"ticket-requested","at"', '{"type":"gap"', '{"ty', '{'])
    expect([start, isRecordingStart(start)]).toEqual([start, true]);
  for (const start of [
    'root:x:0:0',
    '{"batch":1}',
    '{"type":"other","x":1}',
    '{"type":"framed","x":1',
    '[{"type":"frame"',
  ])
    expect([start, isRecordingStart(start)]).toEqual([start, false]);
});
