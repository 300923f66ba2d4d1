import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { type OperatorFunction, Subject, from, of } from 'rxjs';
import { frames } from '../../src/operators/frames.js';
import { gaps } from '../../src/operators/gaps.js';
import { Decoded } from '../../src/operators/items/item.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import { filterValues, mapValues } from '../../src/operators/values.js';
import { whereBytes } from '../../src/operators/where-bytes.js';
import { type AcceptedValues, type WhereFieldOptions, whereField } from '../../src/operators/where-field.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { cases, isAllCases, itInCi } from '../support/cases.js';
import { receivedIn } from '../support/received-in.js';
import { compareWithParse } from './field-documents.js';
import {
  binaryFrame,
  disconnected,
  emittedBy,
  frameOf,
  gapOf,
  issued,
  marbles,
  opened,
  opening,
  reconnecting,
  requested,
  stopped,
  watermark,
} from './stream.js';

/** Returns the texts that pass the filter. */
const passing = (
  texts: readonly (string | Frame<Uint8Array>)[],
  ...filter: [path: string, accepted: AcceptedValues, options?: WhereFieldOptions]
): readonly string[] => {
  const frames = texts.map((text) => (typeof text === 'string' ? frameOf(text) : text));
  return emittedBy(from(frames).pipe(whereField(...filter))).map((each) => each.text());
};

describe('whereField', () => {
  const values = { a: frameOf('{"to":"a"}'), b: frameOf('{"to":"b"}'), c: frameOf('{"by":"a"}') };

  it("emits everything that isn't a frame, in order, and no binary frame", () => {
    const events = { ...values, o: opened(1), d: disconnected(2), g: gapOf(2, 3), w: watermark(4), n: 5, u: undefined };
    const binary = { x: binaryFrame(...Buffer.from('{"to":"a"}')) };
    marbles(({ cold, expectObservable }) => {
      const source$ = cold('-o-b-d-(og)-x-w-n-u-a-#', { ...events, ...binary });
      const expected = '    -o---d-(og)---w-n-u-a-#';
      expectObservable(source$.pipe(whereField('to', 'a'))).toBe(expected, events);
    });
  });

  it('agrees with JSON.parse on random documents, and never throws', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { differences, matching, valid } = compareWithParse(isAllCases ? 10_000 : 500, seed);
    expect(differences).toEqual([]);
    expect(matching).toBeGreaterThan(valid / 10);
  });

  it('sees each change of a set', () => {
    const source = new Subject<Frame>();
    const wallets = new Set<string>();
    const passed: unknown[] = [];
    source.pipe(whereField('to', wallets)).subscribe((each) => passed.push(each));
    source.next(values.a);
    wallets.add('a');
    source.next(values.a);
    wallets.delete('a');
    wallets.add('b');
    for (const each of [values.a, values.b]) source.next(each);
    expect(passed).toEqual([values.a, values.b]);
  });

  it('asks a set of another class about each value', () => {
    class AllButB extends Set<string> {
      override has(value: string): boolean {
        return value !== 'b';
      }
    }
    const texts = ['{"to":"a"}', '{"to":"b"}', '{"to":"c"}'];
    expect(passing(texts, 'to', new AllButB(['a']))).toEqual([texts[0], texts[2]]);
  });

  it('takes a path of 100 steps', () => {
    const deep = `${'{"a":'.repeat(100)}"b"${'}'.repeat(100)}`;
    expect(passing([deep], Array(100).fill('a').join('.'), 'b')).toEqual([deep]);
  });

  describe('with ignoreCase', () => {
    const ignoreCase = true;

    it('keeps a text whose other spelling leaves the set', () => {
      const source = new Subject<Frame>();
      const wallets = new Set(['0xAB', '0xab', '0xCD']);
      const passed: string[] = [];
      source.pipe(whereField('to', wallets, { ignoreCase })).subscribe((frame) => passed.push(frame.text()));
      source.next(frameOf('{"to":"0xcd"}'));
      wallets.delete('0xab');
      wallets.add('0xef');
      source.next(frameOf('{"to":"0xAB"}'));
      expect(passed).toEqual(['{"to":"0xcd"}', '{"to":"0xAB"}']);
    });

    it('notices after a second that a text with capital letters has replaced another', () => {
      const source = new Subject<Frame>();
      const wallets = new Set(['A']);
      let passed = 0;
      source.pipe(whereField('to', wallets, { ignoreCase })).subscribe(() => (passed += 1));
      const clock = jest.spyOn(performance, 'now').mockReturnValue(50_000);
      source.next(values.a);
      wallets.delete('A');
      wallets.add('B');
      source.next(values.b);
      expect(passed).toBe(1);
      clock.mockReturnValue(51_000);
      source.next(values.b);
      clock.mockRestore();
      expect(passed).toBe(2);
    });
  });

  it('errors when a function throws', () => {
    const thrown = new Error('mine');
    const fails = () => {
      throw thrown;
    };
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-c-a-b-|', values).pipe(whereField('to', fails))).toBe('---#', values, thrown);
    });
  });

  it('reads each byte of a hostile frame a few times at most, so it takes time in proportion to its size', () => {
    const parts = ['t', '"to"', '"to":', '"to":1', '\\"', '[', '{"to":', '"é":1,', '"to":"b",', '{"to":[', ' '];
    const repeated = parts.map((part) => part.repeat(400 / part.length));
    const reads = repeated
      .flatMap((text) => [text, `{${text}`, `{"x":"${text}`])
      .flatMap((text) => ['to', 'to.to', 'é', '[].to'].map((path) => readsOf(text, path)));
    // If the search of any of these frames were quadratic, it would read a byte more than 30 times.
    expect(Math.max(...reads)).toBeLessThan(16);
  });
});

/** Returns how often a filter reads a byte of a text, on average. */
const readsOf = (text: string, path: string): number => {
  const bytes = Buffer.from(text);
  let reads = 0;
  const find = (what: number | Uint8Array, from = 0): number => {
    const at = bytes.indexOf(what, from);
    reads += (at < 0 ? bytes.length : at + 1) - from;
    return at;
  };
  const part = <T>(from: number, to: number, read: (from: number, to: number) => T): T => {
    reads += Math.min(to, bytes.length) - from;
    return read(from, to);
  };
  const methods: Readonly<Record<string, unknown>> = {
    indexOf: find,
    includes: (what: number) => find(what) >= 0,
    subarray: (from: number, to: number) => part(from, to, (...range) => bytes.subarray(...range)),
    utf8Slice: (from: number, to: number) => part(from, to, (...range) => bytes.toString('utf8', ...range)),
  };
  const data = new Proxy(bytes, {
    get: (_, name) => {
      if (name === 'length') return bytes.length;
      const index = Number(name);
      if (Number.isNaN(index)) return methods[String(name)];
      reads += 1;
      return bytes[index];
    },
  });
  // A method that isn't counted is no function here, and so an error.
  expect(emittedBy(from([new Frame('raw', data, false, 1, 1)]).pipe(whereField(path, ['c'])))).toEqual([]);
  return reads / bytes.length;
};

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

  it('gaps ends an outage 500 ms after `opened` if only items without a time follow, which may have been delayed', () => {
    const again = [opened(3), stopped(4), requested(10), issued(11), opening(20)];
    const seen = (...items: readonly unknown[]) => emittedBy(of(...again, ...items).pipe(gaps()));
    expect(seen({ price: 1 })).toMatchObject([{ from: 4, to: 520 }]);
    expect(seen(frameOf('f', 30))).toMatchObject([{ from: 4, to: 20 }]);
  });
});

describe('whereBytes', () => {
  const values = { a: frameOf('{"to":"a"}'), b: frameOf('{"to":"b"}'), c: frameOf('{"to":"c"}') };

  it('emits the frames that contain the needle, and every other event unchanged, in order', () => {
    const events = { ...values, o: opened(1), d: disconnected(2), g: gapOf(2, 3) };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-o-b-d-(og)-(ab)-c-#', events);
      const sub = '         ^------------------!';
      const expected = '    -o---d-(og)-a------#';
      expectObservable(source$.pipe(whereBytes('"a"'))).toBe(expected, events);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('finds bytes, even in binary frames, and texts as UTF-8', () => {
    const frames = [binaryFrame(1, 0xff, 0, 2), frameOf('grüße'), frameOf('gruesse')];
    const matching = (needle: string | Uint8Array) => emittedBy(from(frames).pipe(whereBytes(needle)));
    expect(matching(new Uint8Array([0xff, 0]))).toEqual([frames[0]]);
    expect(matching('ü')).toEqual([frames[1]]);
    expect(matching(Buffer.from('gr'))).toEqual([frames[1], frames[2]]);
  });

  itInCi('takes 100,000 needles, which are too many for the arguments of another call', () => {
    const needles = Array.from({ length: 100_000 }, (_, n) => `wallet${n}`);
    const passed: string[] = [];
    from(['"wallet99999"', '"wallet"'].map((text) => frameOf(text)))
      .pipe(whereBytes(...needles))
      .subscribe((frame) => passed.push(frame.text()));
    expect(passed).toEqual(['"wallet99999"']);
  });

  it('finds any of many needles of all lengths, on their own and at both ends of a frame', () => {
    const letters = (minLength: number, maxLength: number) =>
      fc.string({ unit: fc.constantFrom('a', 'b', '"', 'é'), minLength, maxLength });
    // Some share their first bytes, and some begin with others.
    const needle = fc.oneof(
      letters(1, 14),
      letters(0, 6).map((text) => `abababab${text}`),
    );
    const needles = fc.array(needle, { minLength: 2, maxLength: 30 });
    fc.assert(
      fc.property(
        needles,
        fc.array(fc.oneof(letters(0, 40), needle)),
        fc.array(letters(0, 5)),
        (texts, payloads, ends) => {
          const around = ends.map((end, n) => `${n % 2 === 0 ? '' : end}${texts[n % texts.length]!}${end}`);
          const all = [...payloads, ...around].map((text, n) => {
            const data = Buffer.from(`a"${text}"b`);
            const inner = data.subarray(2, data.length - 2);
            return new Frame<Uint8Array>('raw', n % 3 === 0 ? new Uint8Array(inner) : inner, false, 0, 1);
          });
          expect(emittedBy(from(all).pipe(whereBytes(...texts)))).toEqual(
            all.filter((each) => texts.some((text) => each.text().includes(text))),
          );
        },
      ),
      { numRuns: cases(1_000) },
    );
  });

  it('keeps searching after many places that only begin like the needle', () => {
    const data = Buffer.from(`${'zq'.repeat(50)}zqzr`);
    const frames = [data, new Uint8Array(data), data.subarray(0, 103)].map(
      (each) => new Frame<Uint8Array>('raw', each, false, 0, 1),
    );
    expect(emittedBy(from(frames).pipe(whereBytes('zqzr')))).toEqual([frames[0], frames[1]]);
  });
});

it.each([
  ['whereField', whereField('to', 'a')],
  ['whereBytes', whereBytes('"a"', '}"to"')],
])('%s searches a received frame in place, without creating its `data`', (_name, operator) => {
  const memory = Buffer.from('"to":"a"{"to":"b"}"to":"a"{"to":"a"}"to":"a"');
  const all = [receivedIn(memory, 8, 18), receivedIn(memory, 26, 36)];
  const passed = emittedBy(from(all).pipe(operator));
  expect(passed).toHaveLength(1);
  expect(passed[0]).toBe(all[1]);
  expect(all.map(({ payload }) => payload.isLeased)).toEqual([true, true]);
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
});

it('a Decoded that mapValues returns keeps the time of its frame for windows', () => {
  const framesAt = [10, 20, 110].map((at) => frameOf(`${at}`, at));
  const windows = emittedBy(
    from<FeedEvent[]>([opened(0), ...framesAt, watermark(400)]).pipe(
      mapValues((frame) => new Decoded(Number(frame.text()), frame)),
      filterValues(({ value }) => value !== 20),
      tumblingWindow({ lengthMs: 100 }),
    ),
  );
  const values = windows.map(({ frames, start }) => [start, ...frames.map(({ value }) => value)]);
  expect(values.slice(0, 3)).toEqual([[0, 10], [100, 110], [200]]);
});
