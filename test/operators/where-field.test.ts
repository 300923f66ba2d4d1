import { describe, expect, it, jest } from '@jest/globals';
import { from, Subject } from 'rxjs';
import { type AcceptedValues, whereField, type WhereFieldOptions } from '../../src/operators/where-field.js';
import { Frame } from '../../src/protocol/frame.js';
import { cases } from '../support/cases.js';
import { receivedIn } from '../support/received-in.js';
import { compareWithParse } from './field-documents.js';
import { binaryFrame, disconnected, frameOf, gapOf, marbles, opened, watermark } from './stream.js';

/** Returns the texts that pass the filter. */
const passing = (
  texts: readonly (string | Frame<Uint8Array>)[],
  path: string,
  accepted: AcceptedValues,
  options?: WhereFieldOptions,
): readonly string[] => {
  const passed: string[] = [];
  from(texts.map((text) => (typeof text === 'string' ? frameOf(text) : text)))
    .pipe(whereField(path, accepted, options))
    .subscribe((each) => passed.push(each.text()));
  return passed;
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

  it.each<[what: string, path: string, accepted: AcceptedValues, passes: string[], not: string[]]>([
    ['a path', 'tx.to', 'a', ['{"tx":{"to":"a"}}'], ['{"to":"a"}', '{"tx":[{"to":"a"}]}', '{"a":{"tx":{"to":"a"}}}']],
    ['any element of a list', 'l[].to', 'a', ['{"l":[{"to":"b"},{"to":"a"}]}'], ['{"l":{"to":"a"}}', '{"l":[]}']],
    ['a list as the document', '[].to', 'a', ['[{},{"to":"a"}]'], ['{"to":"a"}', '[[{"to":"a"}]]']],
    ['a list at the end', 'tags[]', 'a', ['{"tags":["b","a"]}'], ['{"tags":"a"}', '{"tags":[["a"]]}']],
    [
      'the last of several members',
      'to',
      'a',
      ['{"to":"b","to":"a"}'],
      ['{"to":"a","to":"b"}', '{"to":"a","t\\u006f":1}'],
    ],
    [
      'the last of several objects',
      'x.to',
      'a',
      ['{"x":1,"x":{"to":"a"}}'],
      ['{"x":{"to":"a"},"x":{"to":1}}', '{"x":{"to":"a"},"x":0}'],
    ],
    ['an escaped name', 'to', 'a', ['{"\\u0074o":"a"}', '{"t\\u006F" : "a"}'], ['{"\\\\u0074o":"a"}']],
    ['an escaped value', 'to', 'a/b', ['{"to":"a\\/b"}', '{"to":"\\u0061/b"}', '{"to":"a/b"}'], ['{"to":"a\\\\/b"}']],
    ['a name in a text', 'to', 'a', [], ['{"x":"\\"to\\":\\"a\\""}', '{"x":"to","y":"a"}']],
    [
      'a number in any spelling',
      'n',
      1,
      ['{"n":1}', '{"n":1.0}', '{"n":1e0}', '{"n":10E-1}'],
      ['{"n":"1"}', '{"n":11}'],
    ],
    ['true, false and null', 'v', [true, null], ['{"v":true}', '{"v":null}'], ['{"v":false}', '{"v":"true"}', '{}']],
    ['letters beyond ASCII', 'é', 'ü', ['{"é":"ü"}', '{"\\u00e9":"\\u00FC"}'], ['{"é":"u"}', '{"e":"ü"}']],
    ['no set yet', 'to', new Set(), [], ['{"to":"a"}', '{"to":null}']],
    [
      'a long text that differs at its start',
      'to',
      'a-very-long-text',
      ['{"to":"a-very-long-text"}'],
      ['{"to":"A-very-long-text"}', '{"to":"-very-long-text"}'],
    ],
  ])('finds %s', (_what, path, accepted, passes, not) => {
    expect(passing([...not, ...passes], path, accepted)).toEqual(passes);
    // As from a relay in a browser.
    const plain = (text: string) => new Frame<Uint8Array>('raw', new TextEncoder().encode(text), false, 0, 1);
    expect(passing([...not, ...passes].map(plain), path, accepted)).toEqual(passes);
    const list: unknown = Array.isArray(accepted) ? accepted : [accepted];
    if (!(accepted instanceof Set))
      expect(passing([...not, ...passes], path, new Set(list as string[]))).toEqual(passes);
  });

  it('agrees with JSON.parse on random documents, and never throws', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { differences, matching, valid } = compareWithParse(cases(10_000), seed);
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
    source.next(values.a);
    source.next(values.b);
    expect(passed).toEqual([values.a, values.b]);
  });

  describe('with ignoreCase', () => {
    const ignoreCase = true;

    it('accepts texts in upper and lower case, and other values as they are', () => {
      const texts = ['{"to":"0xAB"}', '{"to":"0xab"}', '{"to":"0xac"}', '{"to":1}', '{"to":"\\u0030XaB"}'];
      const wanted = [texts[0], texts[1], texts[3], texts[4]];
      expect(passing(texts, 'to', ['0xaB', 1], { ignoreCase })).toEqual(wanted);
      expect(passing(texts, 'to', new Set(['0xaB', 1]), { ignoreCase })).toEqual(wanted);
      // A letter outside ASCII whose lower case is in ASCII.
      expect(passing(['{"to":"k"}'], 'to', '\u212A', { ignoreCase })).toEqual(['{"to":"k"}']);
      expect(passing(['{"to":"\u212A"}'], 'to', 'k', { ignoreCase })).toEqual(['{"to":"\u212A"}']);
    });

    it('sees each change of a set, even if it has capital letters', () => {
      const source = new Subject<Frame>();
      const wallets = new Set(['A', 'B']);
      let passed = 0;
      source.pipe(whereField('to', wallets, { ignoreCase })).subscribe(() => (passed += 1));
      const passes = (text: string) => {
        const before = passed;
        source.next(frameOf(`{"to":"${text}"}`));
        return passed > before;
      };
      expect([passes('a'), passes('c')]).toEqual([true, false]);
      wallets.add('C');
      expect(passes('c')).toBe(true);
      wallets.delete('A');
      wallets.add('d');
      expect([passes('a'), passes('D')]).toEqual([false, true]);
    });

    it('notices after a second that a text with capital letters has replaced another', () => {
      const source = new Subject<Frame>();
      const wallets = new Set(['A']);
      let passed = 0;
      source.pipe(whereField('to', wallets, { ignoreCase })).subscribe(() => (passed += 1));
      source.next(values.b);
      wallets.delete('A');
      wallets.add('B');
      const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000);
      source.next(values.b);
      clock.mockRestore();
      expect(passed).toBe(1);
    });
  });

  describe('with a function', () => {
    it('calls it with the text of each value at the path, and of no other', () => {
      const called: string[] = [];
      const all = [
        '{"n":"a\\nb","x":{"n":"no"}}',
        '{"n":1.50}',
        '{"n":12345678901234567890}',
        '{"n":true}{',
        '{"n":null,"n":"\\u00e9"}',
        '{"n":["no"]}',
        '{"x":"n"}',
      ];
      passing(all, 'n', (text) => called.push(text) < 0);
      expect(called).toEqual(['a\nb', '1.50', '12345678901234567890', 'true', 'é']);
      expect(passing(all, 'n', (text) => BigInt(/^\d+$/.test(text) ? text : 0) > 2n ** 62n)).toEqual([all[2]]);
    });

    it('errors when it throws', () => {
      const thrown = new Error('mine');
      const fails = () => {
        throw thrown;
      };
      marbles(({ cold, expectObservable }) => {
        expectObservable(cold('-c-a-b-|', values).pipe(whereField('to', fails))).toBe('---#', values, thrown);
      });
    });
  });

  it('searches a received frame in place, without creating its `data`', () => {
    const memory = Buffer.from('"to":"a"{"to":"b"}"to":"a"{"to":"a"}"to":"a"');
    const all = [receivedIn(memory, 8, 18), receivedIn(memory, 26, 36)];
    const passed: unknown[] = [];
    from(all)
      .pipe(whereField('to', 'a'))
      .subscribe((each) => passed.push(each));
    expect(passed).toEqual([all[1]]);
    expect(passed[0]).toBe(all[1]);
    expect(all.map(({ payload }) => payload.isLeased)).toEqual([true, true]);
  });

  it('takes time in proportion to the size of a hostile frame', () => {
    const parts = ['t', '"to"', '"to":', '"to":1', '\\"', '[', '{"to":', '"é":1,', '"to":"b",', '{"to":[', ' '];
    const hostile = (size: number): readonly string[] =>
      parts.map((part) => part.repeat(size / part.length)).flatMap((text) => [text, `{${text}`, `{"x":"${text}`]);
    // The minimum of three runs, in CPU time, because other work on the machine can only add to it.
    const costOf = (size: number): number => {
      const frames = hostile(size);
      const costs = [1, 2, 3].map(() => {
        const started = process.cpuUsage();
        for (const path of ['to', 'to.to', 'é', '[].to']) passing(frames, path, ['c']);
        return process.cpuUsage(started).user;
      });
      return Math.min(...costs);
    };
    costOf(6_000); // Warms up.
    // If the search of any of these frames were quadratic, it would take 16 times as long.
    expect(costOf(24_000)).toBeLessThan(10 * costOf(6_000));
  });
});
