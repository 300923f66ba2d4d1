import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { readEventLine, writeEventLine } from '../../src/protocol/event-line.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { type AnyFrame, Frame } from '../../src/protocol/frame.js';
import {
  type FeedPosition,
  feedPositionOf,
  formatEventId,
  framesBetween,
  isAfterPosition,
  LogPositions,
  parseEventId,
  runOf,
} from '../../src/protocol/position.js';
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

describe('an event id', () => {
  it('is text that `parseEventId` reads back', () => {
    const count = fc.integer({ min: 0, max: 10 ** 15 });
    fc.assert(
      fc.property(fc.stringMatching(/^[\w-]{8}$/), count, count, count, count, (epoch, seq, frames, at, other) => {
        const complete = Math.min(at, other);
        const text = formatEventId(epoch, { seq, frames, at, complete });
        expect(parseEventId(text)).toEqual({ epoch, seq, frames, at, complete });
        // It's written as is into a header and into a field of Server-Sent Events.
        expect(text).toMatch(/^[\x21-\x7e]+$/);
      }),
    );
  });

  it('rounds `at` up and `complete` down, to at least 0, and omits `complete` if it is not earlier', () => {
    expect(formatEventId('e', { seq: 1, frames: 0, at: 1.75, complete: 1.75 })).toBe('e.1.0.2.1');
    expect(formatEventId('e', { seq: 1, frames: 0, at: 9, complete: 9 })).toBe('e.1.0.9');
    expect(formatEventId('e', { seq: 1, frames: 0, at: -5, complete: -6 })).toBe('e.1.0.0');
  });

  it('of an earlier version has one time, and a forged `complete` is limited to `at`', () => {
    for (const id of ['e.3.2.9', 'e.3.2.9.10'])
      expect(parseEventId(id)).toEqual({ epoch: 'e', seq: 3, frames: 2, at: 9, complete: 9 });
  });

  it.each([
    ...[undefined, '', '1', 'e.1.1', 'e.1.1.1.1.1', 'e.1.1.1.', 'e.1.1.1.-1', '.1.1.1', 'e.-1.1.1', 'e.1.-1.1'],
    ...['e.1.1.-1', 'e.1e3.1.1', 'e.1.1.1 ', ' e.1.1.1', 'e.1.1.1\n', 'e.1.1.1\r\nx: y', 'é.1.1.1', 'e.1.1.1, e.2.2.2'],
    ...['e.NaN.1.1', 'e.Infinity.1.1', 'e.١.1.1', 'e.99999999999999999.1.1', `${'e'.repeat(41)}.1.1.1`],
  ])('is not %j', (text) => {
    expect(parseEventId(text)).toBeUndefined();
  });
});

describe('a position in the feed of a cluster', () => {
  const at = (run: string, sequence = 5): FeedPosition => ({ run, sequence, frames: sequence });
  const first = runOf(1, 1, 'host-1-aaaaaaaaaaaa');

  it('names its run by the store, the generation and the end of the owner id, in safe characters', () => {
    expect(runOf(36, 35, 'host-1-0123456789ab')).toBe('c10-z-0123456789ab');
    expect(runOf(1, 2, 'a.b:c')).toBe('c1-2-a_b_c');
  });

  it('fits into the id of a message, even with the largest numbers, and no id of a relay is mistaken for one', () => {
    const run = runOf(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 'x'.repeat(80));
    const id = parseEventId(`${run}.1.2.3`);
    expect(id && feedPositionOf(id)).toEqual({ run, sequence: 1, frames: 2 });
    expect(feedPositionOf({ epoch: 'relay', seq: 1, frames: 1, at: 0, complete: 0 })).toBeUndefined();
  });

  it.each<[string, FeedPosition, FeedPosition, boolean | undefined]>([
    ['later in the same run', at(first, 6), at(first, 5), true],
    ['the same', at(first, 5), at(first, 5), false],
    ['of a later generation', at(runOf(1, 2, 'b'), 0), at(first, 9), true],
    ['of an earlier generation', at(first, 9), at(runOf(1, 2, 'b'), 0), false],
    ['of a later store', at(runOf(2, 1, 'b'), 0), at(runOf(1, 9, 'b'), 9), true],
    ['of another owner with the same number', at(runOf(1, 1, 'b')), at(first), undefined],
    ['of no owner', at('other'), at(first), undefined],
    ['compared with a position of no owner', at(first), at('other'), undefined],
  ])('%s is compared', (_, one, other, expected) => {
    expect(isAfterPosition(one, other)).toBe(expected);
  });

  it('counts the frames up to a later one in the same run', () => {
    expect(framesBetween(at(first, 2), at(first, 7))).toBe(5);
    expect(framesBetween(at(first, 7), at(first, 2))).toBe(0);
    expect(framesBetween(at(first, 2), at(runOf(1, 2, 'b'), 7))).toBeUndefined();
  });
});

it('LogPositions follows the records of a log, and counts the frames of a gap that its reader found', () => {
  const positions = new LogPositions();
  const after = (type: string, position?: { log: string; offset: number; frames?: number }, missed?: number) => {
    positions.receive({ type, position, ...(missed !== undefined && { missed }) });
    return positions.position;
  };
  const run = 'c0-0-a';
  expect(after('watermark')).toBeUndefined();
  expect(after('frame', { log: '', offset: 1 })).toBeUndefined();
  expect(after('frame', { log: 'a', offset: 1 })).toEqual({ run, sequence: 1, frames: 0 });
  expect(after('frame', { log: 'a', offset: 2, frames: 5 })).toEqual({ run, sequence: 2, frames: 5 });
  expect(after('gap', { log: 'a', offset: 2 }, 3)).toEqual({ run, sequence: 3, frames: 8 });
  expect(after('gap', { log: 'a', offset: 3 })).toEqual({ run, sequence: 4, frames: 8 });
  expect(after('frame', { log: 'a', offset: 9 })).toEqual({ run, sequence: 9, frames: 8 });
});
