import { describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, type OperatorFunction, toArray } from 'rxjs';
import { frames } from '../../src/operators/frames.js';
import { gaps } from '../../src/operators/gaps.js';
import { Decoded } from '../../src/operators/items/item.js';
import { filterValues, mapValues } from '../../src/operators/values.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import { whereBytes } from '../../src/operators/where-bytes.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import {
  binaryFrame,
  disconnected,
  frameOf,
  gapOf,
  issued,
  marbles,
  opened,
  reconnecting,
  requested,
  watermark,
} from './stream.js';
import fc from 'fast-check';
import { cases } from '../support/cases.js';
import { receivedIn } from '../support/received-in.js';

describe('frames and gaps', () => {
  const f = frameOf('f');
  const lifecycle = { t: requested(1), i: issued(2), o: opened(3), d: disconnected(4), r: reconnecting(5, 1) };
  const values = { ...lifecycle, g: gapOf(4, 6), f, D: new Decoded(1, f), n: 5, u: undefined, x: null };

  it('frames emits frames and values created from them, gaps emits only gaps, and both error with the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-i-o-f-D-d-r-(og)-f-n-u-x-#', values);
      const sub = '         ^---------------------------!';
      const items = '       -------f-D----------f-n-u-x-#';
      const gapsOnly = '    ---------------g------------#';
      expectObservable(source$.pipe(frames())).toBe(items, values);
      expectObservable(source$.pipe(gaps())).toBe(gapsOnly, values);
      expectSubscriptions(source$.subscriptions).toBe([sub, sub]);
    });
  });
});

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

  it('emits every other event unchanged, in order', () => {
    const events = { ...values, o: opened(1), d: disconnected(2), g: gapOf(2, 3) };
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-o-b-d-(og)-a-#', events);
      const expected = '    -o---d-(og)-a-#';
      expectObservable(source$.pipe(whereBytes('"a"'))).toBe(expected, events);
    });
  });

  it('finds bytes, even in binary frames, and texts as UTF-8', async () => {
    const frames = [binaryFrame(1, 0xff, 0, 2), frameOf('grüße'), frameOf('gruesse')];
    const matching = (needle: string | Uint8Array) => lastValueFrom(from(frames).pipe(whereBytes(needle), toArray()));
    expect(await matching(new Uint8Array([0xff, 0]))).toEqual([frames[0]]);
    expect(await matching('ü')).toEqual([frames[1]]);
    expect(await matching(Buffer.from('gr'))).toEqual([frames[1], frames[2]]);
  });

  it('finds any of many needles of all lengths, on their own and at both ends of a frame', () => {
    const letters = (minLength: number, maxLength: number) =>
      fc.string({ unit: fc.constantFrom('a', 'b', '"', 'é'), minLength, maxLength });
    const needles = fc.array(letters(1, 14), { minLength: 2, maxLength: 30 });
    fc.assert(
      fc.property(needles, fc.array(letters(0, 40)), fc.array(letters(0, 5)), (texts, payloads, ends) => {
        const around = ends.map((end, n) => `${n % 2 === 0 ? '' : end}${texts[n % texts.length]!}${end}`);
        const all = [...payloads, ...around].map((text, n) => {
          const data = Buffer.from(`a"${text}"b`);
          const inner = data.subarray(2, data.length - 2);
          return new Frame<Uint8Array>('raw', n % 3 === 0 ? new Uint8Array(inner) : inner, false, 0, 1);
        });
        const matching: unknown[] = [];
        from(all)
          .pipe(whereBytes(...texts))
          .subscribe((each) => matching.push(each));
        expect(matching).toEqual(all.filter((each) => texts.some((text) => each.text().includes(text))));
      }),
      { numRuns: cases(1_000) },
    );
  });

  it('keeps searching after many places that only begin like the needle', () => {
    const data = Buffer.from(`${'zq'.repeat(50)}zqzr`);
    const frames = [data, new Uint8Array(data), data.subarray(0, 103)].map(
      (each) => new Frame<Uint8Array>('raw', each, false, 0, 1),
    );
    const matching: unknown[] = [];
    from(frames)
      .pipe(whereBytes('zqzr'))
      .subscribe((each) => matching.push(each));
    expect(matching).toEqual([frames[0], frames[1]]);
  });

  it('searches a received frame in place, without creating its `data`', () => {
    const memory = Buffer.from('before{"to":"0xb2"}behind');
    const received = (end: number) => receivedIn(memory, 6, end);
    const all = [received(19), received(9)];
    const matches: unknown[] = [];
    from(all)
      .pipe(whereBytes('"0xb2"', 'behind'))
      .subscribe((each) => matches.push(each));
    expect(matches).toEqual([all[0]]);
    expect(matches[0]).toBe(all[0]);
    expect(all.map(({ payload }) => payload.isLeased)).toEqual([true, true]);
  });
});

type Predicate = (value: unknown) => boolean;
describe.each<[string, string, (fn: Predicate) => OperatorFunction<unknown, unknown>]>([
  ['mapValues', 'fn', mapValues<unknown, boolean>],
  ['filterValues', 'predicate', filterValues<unknown>],
])('%s', (_name, option, operator) => {
  const f = frameOf('f');
  const fields = { o: opened(3), d: disconnected(4), r: reconnecting(5, 1), g: gapOf(4, 6), w: watermark(7) };
  const looksLikeOne = { type: 'opened' };

  it('only calls the function for values, and keeps every event in its place', () => {
    const called: unknown[] = [];
    const values = { ...fields, f, D: new Decoded(1, f), n: 5, u: undefined, x: null, l: looksLikeOne, m: true };
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source$ = cold('-o-f-D-d-r-(og)-w-n-u-x-l-|', values);
      const sub = '         ^-------------------------!';
      const mapped = '      -o-m-m-d-r-(og)-w-m-m-m-m-|';
      const kept = '        -o-f-D-d-r-(og)-w-n-u-x-l-|';
      const seen = (value: unknown) => called.push(value) > 0;
      expectObservable(source$.pipe(operator(seen))).toBe(option === 'fn' ? mapped : kept, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
      flush();
      expect(called).toEqual([f, values.D, 5, undefined, null, looksLikeOne]);
    });
  });

  it('errors when the function throws, and with the source', () => {
    const thrown = new Error('mine');
    const fails = () => {
      throw thrown;
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-o-f-o-|', { ...fields, f });
      expectObservable(source$.pipe(operator(fails))).toBe('-o-#', fields, thrown);
      expectSubscriptions(source$.subscriptions).toBe('^--!');
      expectObservable(cold('-o-#', fields).pipe(operator(fails))).toBe('-o-#', fields);
    });
  });
});

describe('mapValues', () => {
  it('keeps the time of a frame for windows if it returns a Decoded', async () => {
    const framesAt = [10, 20, 110].map((at) => frameOf(`${at}`, at));
    const events: FeedEvent[] = [opened(0), ...framesAt, watermark(400)];
    const windows = await lastValueFrom(
      from(events).pipe(
        mapValues((frame) => new Decoded(Number(frame.text()), frame)),
        filterValues(({ value }) => value !== 20),
        tumblingWindow({ lengthMs: 100 }),
        toArray(),
      ),
    );
    const values = windows.map(({ frames, start }) => [start, frames.map(({ value }) => value)]);
    expect(values.slice(0, 2)).toEqual([
      [0, [10]],
      [100, [110]],
    ]);
  });
});
