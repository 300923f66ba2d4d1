import { describe, expect, it } from '@jest/globals';
import { right } from 'fp-ts/lib/Either.js';
import { Frame } from '../../../src/protocol/frame.js';
import { Conflated } from '../../../src/operators/items/conflated.js';
import { Decoded } from '../../../src/operators/items/decoded.js';
import { isSparse, slackOf, viewOf, withOwnBytes } from '../../../src/operators/memory/own-bytes.js';
import { ReplayedFrame } from '../../../src/operators/items/replayed.js';
import { ReceivedFrame } from '../../../src/transport/received-frame.js';
import { bufferSizes, chunk, fullChunk } from './views.js';

describe('viewOf', () => {
  const [frame] = fullChunk(1, 10);

  it.each([
    ['a frame', frame, frame!.data],
    ['a value created from a frame', right(new Conflated(1, frame, 2)), frame!.data],
    ['a byte array', frame!.data, frame!.data],
    ['anything else', { data: frame!.data }, undefined],
    ['a text', 'text', undefined],
  ])('returns the bytes of %s', (_, value, view) => {
    expect(viewOf(value)).toBe(view);
  });
});

describe('isSparse', () => {
  it.each([
    [0, 0, false],
    [0, 1, true],
    [74, 100, true],
    [75, 100, false],
    [99, 99, false],
  ])('%d bytes of %d: %p', (bytes, bufferBytes, is) => {
    expect(isSparse(new Uint8Array(new ArrayBuffer(bufferBytes), 0, bytes))).toBe(is);
  });
});

describe('slackOf', () => {
  it('returns how many bytes a value keeps alive in addition to its own', () => {
    const [frame] = chunk(1_000, [5, 15]) as [Frame];
    expect([frame, frame.data, right(frame), 'text', undefined].map(slackOf)).toEqual([990, 990, 990, 0, 0]);
  });
});

describe('viewOf and slackOf a frame of the service', () => {
  const received = (payload: string) => {
    const memory = Buffer.alloc(1_000, payload);
    return new ReceivedFrame('raw', memory, 0, Buffer.byteLength(payload), false, false, 3, 4, true);
  };
  const reads: readonly (readonly [string, string, (frame: ReceivedFrame) => unknown, number, number | undefined])[] = [
    ['has no view and no slack before it is read', 'ascii', () => undefined, 0, undefined],
    ['has no view and no slack as an ASCII text', 'ascii', (frame) => frame.text(), 0, undefined],
    ['counts two bytes for a character of other texts', 'a\u{1f642}bcde', (frame) => frame.text(), 5, undefined],
    ['counts the rest of the buffer of its data', 'ascii', (frame) => frame.data, 65_536 - 5, 5],
    ['counts a text and data', 'ascii', (frame) => [frame.text(), frame.data], 65_536, 5],
    ['counts the block that it shares', 'ascii', (frame) => frame.moveTo(Buffer.alloc(700), 9), 695, undefined],
    ['has a view of the block', 'ascii', (frame) => [frame.moveTo(Buffer.alloc(700), 9), frame.data], 695, 5],
    ['has no slack as a Buffer of exactly its size', 'x'.repeat(5_000), (frame) => frame.own(), 0, 5_000],
  ];
  it.each(reads)('%s', (_, payload, read, slack, viewBytes) => {
    const frame = received(payload);
    read(frame);
    expect([slackOf(right(frame)), viewOf(frame)?.byteLength]).toEqual([slack, viewBytes]);
  });
});

describe('withOwnBytes', () => {
  it('copies a frame into a buffer of exactly its size', () => {
    const frames = chunk(65_536, [100, 300], [500, 500]);
    const [copy] = frames.map(({ data }) => Buffer.from(data));
    for (const frame of frames) expect(withOwnBytes(frame)).toBe(frame);
    expect(bufferSizes(frames)).toEqual([200, 0]);
    expect(frames.map(({ data }) => data)).toEqual([copy, Buffer.alloc(0)]);
  });

  it('copies bytes from a pool, such as those of a text', () => {
    const frame = new Frame('market', Buffer.from('text'), false, 1, 1);
    expect(bufferSizes([withOwnBytes(frame)])).toEqual([4]);
    expect(frame.text()).toBe('text');
  });

  it('changes the frame that a value was created from, and returns the same value', () => {
    const frames = chunk(1_000, [0, 10], [10, 20], [20, 30]) as [Frame, Frame, Frame];
    const values = [new Decoded(1, frames[0]), right(new Decoded(2, frames[1])), new Conflated('key', frames[2], 1)];
    for (const value of values) expect(withOwnBytes<unknown>(value)).toBe(value);
    expect(bufferSizes(frames)).toEqual([10, 10, 10]);
  });

  it('changes no other field of a frame', () => {
    const read = Buffer.alloc(1_000, 'ä');
    const replayed = new ReplayedFrame('raw', read.subarray(0, 2), false, 3, 4, 5);
    const ascii = new ReceivedFrame('raw', Buffer.alloc(1_000, 'a'), 0, 2, false, true, 3, 4, false);
    expect(ascii.data.buffer.byteLength).toBe(1_000);
    expect(withOwnBytes(replayed)).toMatchObject({
      feed: 'raw',
      isBinary: false,
      receivedAt: 3,
      connection: 4,
      offset: 5,
    });
    expect(withOwnBytes(ascii).text()).toBe('aa');
    expect([replayed.text(), ...bufferSizes([replayed, ascii])]).toEqual(['ä', 2, 2]);
  });

  it('does not copy a frame that uses at least 3/4 of its buffer', () => {
    const [dense] = chunk(1_000, [100, 850]) as [Frame];
    const { data } = dense;
    expect(withOwnBytes(dense).data).toBe(data);
  });

  it('does not copy a frozen frame', () => {
    const [frozen] = chunk(1_000, [0, 10]) as [Frame];
    const { data } = frozen;
    expect(withOwnBytes(Object.freeze(frozen)).data).toBe(data);
  });

  it('returns another byte array, and changes none', () => {
    const [{ data }] = chunk(1_000, [7, 10]) as [Frame];
    const own = withOwnBytes(data);
    expect([own, own.buffer.byteLength, data.buffer.byteLength]).toEqual([Buffer.from([7, 8, 9]), 3, 1_000]);
  });

  it('copies a Buffer to a Buffer, and a plain byte array to a plain one', () => {
    const plain = new Uint8Array(1_000).fill(7).subarray(3, 13);
    const shared = new Uint8Array(new SharedArrayBuffer(1_000)).fill(7).subarray(3, 13);
    const [{ data }] = chunk(1_000, [0, 10]) as [Frame];
    expect([data, plain, shared].map((view) => Object.getPrototypeOf(withOwnBytes(view)) as unknown)).toEqual([
      Buffer.prototype,
      Uint8Array.prototype,
      Uint8Array.prototype,
    ]);
    expect([...withOwnBytes(plain), ...withOwnBytes(shared)]).toEqual(Array(20).fill(7));
  });

  it.each(['text', undefined, null, 5, { type: 'gap' }])('returns %p unchanged', (value) => {
    expect(withOwnBytes(value)).toBe(value);
  });
});
