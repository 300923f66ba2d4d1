import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import { Frame, ReplayedFrame, TradeFeedError } from '../../../../src/index.js';
import { frameLine, gapLine, readLine } from '../../../../src/operators/node/recording/recording-line.js';
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

  it.each([
    ['{"secret', "it isn't JSON"],
    ['', "it isn't JSON"],
    ['"secret"', "it isn't a JSON object"],
    ['null', "it isn't a JSON object"],
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
    expect(() => readLine(line, 0)).toThrow(new TypeError("it isn't UTF-8"));
  });
});
