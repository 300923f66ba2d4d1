import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Observable, take } from 'rxjs';
import { Frame } from '../../src/protocol/frame.js';
import { type Block, emitFrames, rowBytes } from '../../src/worker/block.js';
import { createOpenBlock } from '../../src/worker/open-block.js';
import { cases } from '../support/cases.js';

const frame = (data: Buffer, isBinary = false, receivedAt = 1): Frame =>
  new Frame('raw', data, isBinary, receivedAt, 3);

const frames$ = (block: Block, connection = 3): Observable<Frame> =>
  new Observable((subscriber) => emitFrames(block, connection, subscriber));

const framesOf = (block: Block | undefined, connection = 3): readonly Frame[] => {
  const frames: Frame[] = [];
  if (block) frames$(block, connection).subscribe((each) => frames.push(each));
  return frames;
};

/** Frames as a socket delivers them: views of chunks, some adjacent, some with holes, some in another order. */
const chunks = fc.array(
  fc.record({
    bytes: fc.uint8Array({ minLength: 0, maxLength: 80 }),
    cuts: fc.array(fc.tuple(fc.nat(80), fc.nat(20), fc.boolean(), fc.nat()), { maxLength: 12 }),
  }),
  { maxLength: 6 },
);
const framesIn = ({
  bytes,
  cuts,
}: {
  readonly bytes: Uint8Array;
  readonly cuts: readonly [number, number, boolean, number][];
}) =>
  cuts.map(([start, length, isBinary, at]) =>
    frame(
      Buffer.from(
        bytes.buffer,
        bytes.byteOffset + Math.min(start, bytes.length),
        Math.min(length, Math.max(0, bytes.length - start)),
      ),
      isBinary,
      at,
    ),
  );

describe('a block', () => {
  it('contains the frames that were added, whatever their memory, and does not share memory with them', () => {
    fc.assert(
      fc.property(chunks, (all) => {
        const frames = all.flatMap(framesIn);
        const open = createOpenBlock(Infinity);
        const contents = frames.map(({ data, isBinary, receivedAt }) => ({
          text: data.toString('latin1'),
          isBinary,
          receivedAt,
        }));
        for (const each of frames) open.add(each);
        const block = open.seal();
        for (const { bytes } of all) bytes.fill(0);
        expect(open).toMatchObject({ isEmpty: true, usedBytes: 0 });
        expect(block?.count ?? 0).toBe(frames.length);
        expect(
          framesOf(block).map(({ data, isBinary, receivedAt }) => ({
            text: data.toString('latin1'),
            isBinary,
            receivedAt,
          })),
        ).toEqual(contents);
        if (block) expect(block).toMatchObject({ from: frames[0]?.receivedAt, to: frames.at(-1)?.receivedAt });
      }),
      { numRuns: cases(500) },
    );
  });

  it('contains a row and a payload for each frame, and the few bytes between payloads of one read', () => {
    const read = Buffer.from('..aaaa..bbbb....................cc');
    const open = createOpenBlock(Infinity);
    for (const [start, end] of [
      [2, 6],
      [8, 12],
      [32, 34],
    ])
      open.add(frame(read.subarray(start, end)));
    const { bytes } = open.seal() as Block;
    expect(Buffer.from(bytes, 3 * rowBytes).toString()).toBe('aaaa..bbbbcc');
  });

  it('accepts any number of frames', () => {
    const open = createOpenBlock(Infinity);
    const data = Buffer.from('x');
    for (let n = 0; n < 5_000; n += 1) open.add(frame(data, n % 2 === 0, n));
    expect(framesOf(open.seal()).map(({ receivedAt }) => receivedAt)).toEqual(
      Array.from({ length: 5_000 }, (_, n) => n),
    );
  });

  it('is sealed when it uses enough memory and the next frame is of another read; an empty one is not sealed', () => {
    const open = createOpenBlock(100);
    const [first, second] = [Buffer.alloc(100), Buffer.alloc(100)];
    expect(open.seal()).toBeUndefined();
    expect(open.add(frame(first.subarray(0, 1)))).toBeUndefined();
    expect(open.usedBytes).toBe(first.buffer.byteLength);
    expect(open.add(frame(first.subarray(1, 3)))).toBeUndefined();
    expect(open.add(frame(second))?.count).toBe(2);
    expect(open.isEmpty).toBe(false);
    expect(open.seal()?.count).toBe(1);
    open.add(frame(Buffer.from(new ArrayBuffer(0))));
    expect(open).toMatchObject({ isEmpty: false, usedBytes: 0 });
  });

  it('emits nothing more after the subscriber unsubscribed', () => {
    const open = createOpenBlock(Infinity);
    for (const word of ['a', 'b', 'c']) open.add(frame(Buffer.from(word)));
    const words: string[] = [];
    frames$(open.seal() as Block)
      .pipe(take(2))
      .subscribe((each) => words.push(each.text()));
    expect(words).toEqual(['a', 'b']);
  });
});
