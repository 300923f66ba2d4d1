import { describe, expect, it } from '@jest/globals';
import { left, right } from 'fp-ts/lib/Either.js';
import {
  bytesOf,
  Conflated,
  Decoded,
  frameOf as frameIn,
  isFrame,
  isLifecycle,
  isLogged,
  timeOf,
  withOwnBytes,
} from '../../src/operators/items/item.js';
import { Frame } from '../../src/protocol/frame.js';
import { bufferSizes, chunk } from './own-bytes/views.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested } from './stream.js';

const relayed = new Frame('raw', new Uint8Array(3), true, 9, 1);
const frame = frameOf('grün', 7);
const decoded = new Decoded({ n: 1 }, frame);
const strangers = [
  ...['opened', 'gap', 'disconnected', 'trade', 5].map((type) => ({ type })),
  { type: 'gap', from: 1 },
  { type: 'gap', to: 1 },
  { type: 'disconnected', at: 1 },
  { type: 'disconnected', failure: { endedAt: 1 } },
  { type: 'gap', failure: { endedAt: 1 } },
  ...[undefined, null, 0, '', 'gap', [], () => 1, Symbol('gap')],
];

describe('isLifecycle', () => {
  it.each([requested(1), issued(1), opened(1), disconnected(1), reconnecting(1, 1), gapOf(1, 2)])(
    'knows $type',
    (event) => {
      expect(isLifecycle(event)).toBe(true);
    },
  );

  it('returns false for frames, values created from them, and all other values', () => {
    for (const item of [frame, decoded, ...strangers]) expect(isLifecycle(item)).toBe(false);
  });
});

describe('timeOf', () => {
  it('reads what decodeEither emits', () => {
    expect([right(decoded), left({ type: 'decode-failure', receivedAt: 8 })].map(timeOf)).toEqual([7, 8]);
    expect([right(1), left('no'), left(undefined), { _tag: 'Left' }].map(timeOf)).toEqual(Array(4).fill(undefined));
    expect(frameIn(right(decoded))).toBe(frame);
  });

  it('returns when a frame was read, an event happened, or a gap ended', () => {
    expect([frame, decoded, opened(3), requested(4), gapOf(5, 9)].map(timeOf)).toEqual([7, 7, 3, 4, 9]);
    for (const item of strangers) expect(timeOf(item)).toBeUndefined();
  });
});

describe('bytesOf', () => {
  it('returns the size of a payload, of a byte array, and of a text in memory', () => {
    expect([frame, decoded, Buffer.from('abc'), new Uint8Array(4), 'abc'].map(bytesOf)).toEqual([5, 5, 3, 4, 6]);
    expect([undefined, null, 5, {}, opened(1)].map(bytesOf)).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('isLogged', () => {
  it('returns true for the records of a log and for values created from them', () => {
    const record = Object.assign(new Frame('market', Buffer.alloc(0), false, 1, 1), { offset: 5 });
    const all = [record, new Decoded(1, record), { ...gapOf(1, 2), offset: 9 }];
    for (const value of all) expect(isLogged(value)).toBe(true);
    for (const value of [frame, decoded, gapOf(1, 2), opened(1), ...strangers]) expect(isLogged(value)).toBe(false);
  });
});

describe('a frame that arrived over a relay', () => {
  it('is a frame for all of these functions, even inside values created from it', () => {
    for (const value of [
      relayed,
      new Decoded(1, relayed),
      new Conflated('key', relayed, 1),
      right(new Decoded(1, relayed)),
    ])
      expect([frameIn(value), timeOf(value), bytesOf(value), isLifecycle(value)]).toEqual([relayed, 9, 3, false]);
    expect([isFrame(relayed), isLogged(relayed)]).toEqual([true, false]);
  });
});

describe('withOwnBytes', () => {
  it('changes the frame a value was created from, and returns the same value', () => {
    const frames = chunk(1_000, [0, 10], [10, 20], [20, 30]) as [Frame, Frame, Frame];
    const values = [new Decoded(1, frames[0]), right(new Decoded(2, frames[1])), new Conflated('key', frames[2], 1)];
    for (const value of values) expect(withOwnBytes<unknown>(value)).toBe(value);
    expect(bufferSizes(frames)).toEqual([10, 10, 10]);
  });

  it.each([
    [749, 749],
    [750, 1_000],
  ])('keeps a buffer of 1,000 bytes if the frame uses at least 3/4 of it: %d bytes', (bytes, bufferBytes) => {
    const [frame] = chunk(1_000, [100, 100 + bytes]) as [Frame];
    expect(withOwnBytes(frame).data.buffer.byteLength).toBe(bufferBytes);
  });

  it("doesn't copy a frozen frame", () => {
    const [frozen] = chunk(1_000, [0, 10]) as [Frame];
    const { data } = frozen;
    expect(withOwnBytes(Object.freeze(frozen)).data).toBe(data);
  });
});
