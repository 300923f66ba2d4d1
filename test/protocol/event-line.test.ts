import { describe, expect, it } from '@jest/globals';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { readEventLine, writeEventLine } from '../../src/protocol/event-line.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../src/protocol/frame.js';
import { disconnected, gapOf, issued, lost, opened, reconnecting, requested } from '../operators/stream.js';
import { essence, frame } from '../relay/support.js';

const previous = lost(400);
const failure = copyFailure(lost(500), { previous });
const events: readonly LifecycleEvent[] = [
  requested(1_000),
  issued(1_001),
  opened(1_002, 3),
  { ...disconnected(1_003), failure },
  reconnecting(1_004, 20, 2),
  { ...gapOf(500, 1_005, failure), missed: 7 },
];

describe('readEventLine', () => {
  it('shifts all times: those of events, frames, failures and previous failures', () => {
    const shift = (event: LifecycleEvent) => readEventLine(writeEventLine(event), 600_000);
    expect(events.slice(0, 3).map(shift)).toEqual([requested(601_000), issued(601_001), opened(601_002, 3)]);
    expect(shift(events[4]!)).toEqual(reconnecting(601_004, 20, 2));
    const put = { endedAt: 600_500, previous: { endedAt: 600_400 } };
    expect(shift(events[3]!)).toMatchObject({ at: 601_003, failure: put });
    expect(shift(events[5]!)).toMatchObject({ from: 600_500, to: 601_005, durationMs: 505, failure: put });
    expect(readEventLine(writeFrame(frame('a', 1_000)), -400)).toMatchObject({ receivedAt: 600 });
  });

  it('returns any relayed value and shifts its time', () => {
    for (const value of [{ n: 1, at: 5 }, [1], 'text', null, 0, false])
      expect(readEventLine(JSON.stringify({ type: 'value', at: 1_000, value }), 500)).toEqual({
        type: 'value',
        at: 1_500,
        value,
      });
  });

  it('returns undefined for an unknown type', () => {
    for (const line of ['{"type":"new-in-some-version","at":1}', '{"type":"__proto__"}', '{}', '[]', '"text"', '5'])
      expect([line, readEventLine(line, 0)]).toEqual([line, undefined]);
  });

  const lineOf = (fields: Readonly<Record<string, unknown>>): string =>
    JSON.stringify({ type: 'gap', from: 1, to: 2, durationMs: 1, failure, ...fields });
  it.each([
    ['text that is not JSON', 'data'],
    ['a gap without its failure', lineOf({ failure: undefined })],
    ['a gap without a time', lineOf({ to: undefined })],
    ['a gap with a text as its time', lineOf({ from: '1' })],
    ['a gap with half a failure', lineOf({ failure: { code: 'x' } })],
    ['a value without the value', '{"type":"value","at":1}'],
    ['a frame without its time', writeFrame(frame('a')).replace('receivedAt', 'x')],
    ['a frame with data that is not base64', writeFrame(frame('%')).replace('utf8', 'base64')],
  ])('throws for %s', (_what, line) => {
    expect(() => readEventLine(line, 0)).toThrow();
  });
});

const overTheWire = (frame: Frame): AnyFrame => readEventLine(writeFrame(frame), 0) as AnyFrame;

const payloads: readonly (readonly [string, Buffer])[] = [
  ['no bytes', Buffer.alloc(0)],
  ['text of other planes', Buffer.from('ü€😀\u2028\u2029\u0085\u0000\r\n\t"\\')],
  ['two byte order marks', Buffer.from('\ufeff\ufeff')],
  ['every byte value', Buffer.from(Array.from({ length: 256 }, (_, n) => n))],
  ['a surrogate', Buffer.of(0xed, 0xa0, 0x80)],
  ['1 MB of text', Buffer.alloc(1_000_000, 'x\n')],
  ['1 MB of bytes', Buffer.alloc(1_000_000, Buffer.of(0xff, 0, 10, 13))],
];

describe('the line of a frame', () => {
  it.each(payloads)('preserves %s, whether sent as text or as binary', (_what, data) => {
    for (const isBinary of [false, true]) {
      const frame = new Frame('raw', data, isBinary, 123.5, 4);
      const relayed = overTheWire(frame);
      expect(essence(relayed)).toEqual(essence(frame));
      expect(relayed.text()).toBe(frame.text());
      // Recordings and other relays write it unchanged.
      expect(writeFrame(relayed)).toBe(writeFrame(frame));
    }
  });

  it('becomes a frame whose data is a Uint8Array of its own, not a Buffer', () => {
    const frame = overTheWire(new Frame('market', Buffer.from('{"a":[1]}'), false, 5, 1));
    expect(frame).toBeInstanceOf(Frame);
    expect(frame.type).toBe('frame');
    expect(frame.json()).toEqual({ a: [1] });
    expect(Object.getPrototypeOf(frame.data)).toBe(Uint8Array.prototype);
    const binary = overTheWire(new Frame('market', Buffer.of(1, 2, 3), true, 5, 1));
    expect(Object.getPrototypeOf(binary.data)).toBe(Uint8Array.prototype);
    expect(binary.data.buffer.byteLength).toBe(3);
    expect(() => overTheWire(new Frame('market', Buffer.from('no'), false, 5, 1)).json()).toThrow(SyntaxError);
  });
});
