import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, lastValueFrom, of, toArray } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../src/protocol/frame.js';
import { whereBytes } from '../../src/operators/where-bytes.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';
import { binaryFrame, disconnected, frameOf, gapOf, marbles, opened } from './stream.js';

describe('whereBytes', () => {
  const values = { a: frameOf('{"to":"a"}'), b: frameOf('{"to":"b"}'), c: frameOf('{"to":"c"}') };

  it('emits the frames that contain the needle', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-b-(ab)-c-|', values);
      const sub = '         ^-----------!';
      const expected = '    -a---a------|';
      expectObservable(source$.pipe(whereBytes('"a"'))).toBe(expected, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('emits a frame that contains several needles once', () => {
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-a-b-c-|', values);
      const expected = '    -a---c-|';
      expectObservable(source$.pipe(whereBytes('"a"', '"c"', 'to'.concat('":"c')))).toBe(expected, values);
    });
  });

  it('emits every other event unchanged, in order', () => {
    const events = { ...values, o: opened(1), d: disconnected(2), g: gapOf(2, 3) };
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-o-b-d-(og)-a-#', events);
      const expected = '    -o---d-(og)-a-#';
      expectObservable(source$.pipe(whereBytes('"a"'))).toBe(expected, events);
    });
  });

  it('finds bytes, also in binary frames, and texts as UTF-8', async () => {
    const frames = [binaryFrame(1, 0xff, 0, 2), frameOf('grüße'), frameOf('gruesse')];
    const matching = (needle: string | Uint8Array) => lastValueFrom(from(frames).pipe(whereBytes(needle), toArray()));
    expect(await matching(new Uint8Array([0xff, 0]))).toEqual([frames[0]]);
    expect(await matching('ü')).toEqual([frames[1]]);
    expect(await matching(Buffer.from('gr'))).toEqual([frames[1], frames[2]]);
  });

  it('does not search beyond the frame in its buffer', async () => {
    const buffer = Buffer.from('one needle two');
    const frame = new Frame('raw', buffer.subarray(0, 5), false, 0, 1);
    expect(await lastValueFrom(of(frame).pipe(whereBytes('needle'), toArray()))).toEqual([]);
  });

  it('searches frames of a relay, which have plain byte arrays', async () => {
    const bytes = new TextEncoder().encode('one needle two');
    const frames = [bytes, bytes.subarray(5), bytes.subarray(0, 6), new Uint8Array(0)].map(
      (data) => new Frame<Uint8Array>('raw', data, false, 0, 1),
    );
    const matching = (...needles: readonly [string, ...string[]]) =>
      lastValueFrom(from(frames).pipe(whereBytes(...needles), toArray()));
    expect(await matching('needle')).toEqual([frames[0]]);
    expect(await matching('eedle', 'one')).toEqual([frames[0], frames[1], frames[2]]);
  });

  it('is not affected when the caller changes a needle later', async () => {
    const needle = Buffer.from('a');
    const operator = whereBytes(needle);
    needle.write('z');
    expect(await lastValueFrom(of(frameOf('a')).pipe(operator, toArray()))).toHaveLength(1);
  });

  it('emits exactly the frames that a search of the bytes finds', () => {
    const bytes = (minLength: number, maxLength: number) =>
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength, maxLength }).map((list) => Buffer.from(list));
    fc.assert(
      fc.property(
        fc.array(bytes(0, 12)),
        fc.array(bytes(1, 3), { minLength: 1, maxLength: 3 }),
        (payloads, needles) => {
          const frames = payloads.map((data) => new Frame('raw', data, true, 0, 1));
          const matching: Frame[] = [];
          from(frames)
            .pipe(whereBytes(...needles))
            .subscribe((frame) => matching.push(frame));
          const hex = (data: Buffer) => data.toString('latin1');
          expect(matching).toEqual(
            frames.filter(({ data }) => needles.some((needle) => hex(data).includes(hex(needle)))),
          );
        },
      ),
    );
  });

  it.each<[string, readonly unknown[]]>([
    ['none', []],
    ['an empty text', ['a', '']],
    ['no bytes', [new Uint8Array(0)]],
    ['a pattern', [/a/]],
    ['nothing', [undefined]],
  ])('refuses %s at once', (_name, needles) => {
    const call = () => whereBytes(...(needles as string[]));
    expect(call).toThrow(TradeFeedError);
    expect(call).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining('`needles`') }),
    );
  });

  it('searches a received frame where it is, and creates no `data`', () => {
    const memory = Buffer.from('before{"to":"0xb2"}behind');
    const received = (end: number) => new ReceivedFrame('raw', memory, 6, end, false, true, 1, 1, true);
    const all = [received(19), received(9)];
    const matches: unknown[] = [];
    from(all)
      .pipe(whereBytes('"0xb2"', 'behind'))
      .subscribe((each) => matches.push(each));
    expect(matches).toEqual([all[0]]);
    expect(matches[0]).toBe(all[0]);
    expect(all.map(({ isLeased }) => isLeased)).toEqual([true, true]);
  });
});
