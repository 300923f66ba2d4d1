import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isUtf8 } from 'node:buffer';
import { Observable } from 'rxjs';
import { PayloadKind } from '../../src/frames/received-frame.js';
import { Frame } from '../../src/protocol/frame.js';
import { type Block, OpenBlock, emitFrames, rowBytes } from '../../src/worker/block.js';
import { cases } from '../support/cases.js';
import { receivedIn } from '../support/received-in.js';

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
type Chunk = typeof chunks extends fc.Arbitrary<readonly (infer T)[]> ? T : never;
const framesIn = ({ bytes, cuts }: Chunk) =>
  cuts.map(([start, length, isBinary, at]) => {
    const from = Math.min(start, bytes.length);
    const data = Buffer.from(bytes.buffer, bytes.byteOffset + from, Math.min(length, bytes.length - from));
    // A connection emits only valid UTF-8 as text.
    return frame(data, isBinary || !isUtf8(data), at);
  });
const contentsOf = (frames: readonly Frame[]) =>
  frames.map(({ data, isBinary, receivedAt }) => ({ text: data.toString('latin1'), isBinary, receivedAt }));

describe('a block', () => {
  it('contains the added frames, whatever their memory, and shares none of it', () => {
    fc.assert(
      fc.property(chunks, (all) => {
        const frames = all.flatMap(framesIn);
        const open = new OpenBlock(Infinity);
        const contents = contentsOf(frames);
        for (const each of frames) open.add(each);
        const block = open.seal();
        for (const { bytes } of all) bytes.fill(0);
        expect(open).toMatchObject({ isEmpty: true, usedBytes: 0 });
        expect(block?.count ?? 0).toBe(frames.length);
        expect(contentsOf(framesOf(block))).toEqual(contents);
        if (block) expect(block).toMatchObject({ from: frames[0]?.receivedAt, to: frames.at(-1)?.receivedAt });
      }),
      { numRuns: cases(500) },
    );
  });

  it('is sealed once it has enough bytes and another frame follows, but never while empty', () => {
    const open = new OpenBlock(100);
    const [first, second] = [Buffer.alloc(100), Buffer.alloc(100)];
    expect(open.seal()).toBeUndefined();
    expect(open.add(frame(first.subarray(0, 1)))).toBeUndefined();
    expect(open.usedBytes).toBe(1);
    expect(open.add(frame(first))).toBeUndefined();
    expect(open.add(frame(second))?.count).toBe(2);
    expect(open.isEmpty).toBe(false);
    expect(open.seal()?.count).toBe(1);
    open.add(frame(Buffer.from(new ArrayBuffer(0))));
    expect(open).toMatchObject({ isEmpty: false, usedBytes: 0 });
  });

  it('is also sealed because of its rows, as frames without a payload need memory', () => {
    const open = new OpenBlock(100);
    const sealed = Array.from({ length: 8 }, () => open.add(frame(Buffer.alloc(0))));
    expect(sealed.map((block) => block?.count)).toEqual([...Array<undefined>(7).fill(undefined), 7]);
  });

  it('accepts any number of frames, of any size', () => {
    const open = new OpenBlock(Infinity);
    const sizes = Array.from({ length: 5_000 }, (_, n) => (n % 2_000 === 1_999 ? 300_000 : n % 7));
    sizes.forEach((size, n) => open.add(frame(Buffer.alloc(size), true, n)));
    const frames = framesOf(open.seal());
    expect(frames.map(({ receivedAt }) => receivedAt)).toEqual([...sizes.keys()]);
    expect(frames.map(({ byteLength }) => byteLength)).toEqual(sizes);
  });

  it('copies a received frame out of the read buffer', () => {
    const read = Buffer.from('..read in place..');
    const open = new OpenBlock(Infinity);
    open.add(receivedIn(read, 2, 15));
    read.fill('x');
    expect(framesOf(open.seal()).map((each) => each.text())).toEqual(['read in place']);
  });

  it('knows which texts are ASCII and which frames are binary', () => {
    const open = new OpenBlock(Infinity);
    // These bytes aren't ASCII, so the text shows which decoder was used.
    const bytes = Buffer.from('\u00e9\u00e9');
    for (const kind of [PayloadKind.Ascii, PayloadKind.Utf8, PayloadKind.Binary])
      open.add(receivedIn(bytes, 0, bytes.length, { kind }));
    const frames = framesOf(open.seal());
    expect(frames.map((each) => each.isBinary)).toEqual([false, false, true]);
    expect(frames.map((each) => each.text())).toEqual([bytes.toString('latin1'), '\u00e9\u00e9', '\u00e9\u00e9']);
  });

  it('gives its memory away if most of it is used, and fills other memory next', () => {
    const open = new OpenBlock(64 * 1024);
    const add = (word: string, bytes: number) => open.add(frame(Buffer.alloc(bytes, word)));
    add('a', 1_000);
    const small = open.seal() as Block;
    const full = [...Array<string>(65).fill('b'), 'c'].map((word) => add(word, 1_000)).find(Boolean) as Block;
    add('d', 1_000);
    expect([small, full].map(({ bytes }) => bytes.byteLength)).toEqual([1_000 + rowBytes, 80 * 1024]);
    const wordOf = (block: Block) => framesOf(block).map((each) => each.text()[0]);
    expect([small, full].map(wordOf)).toEqual([['a'], Array(full.count).fill('b')]);
  });
});
