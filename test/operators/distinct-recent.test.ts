import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { from, map, Subject, toArray } from 'rxjs';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { Decoded, type FeedEvent, Frame, createTradeFeedError } from '../../src/index.js';
import { distinctRecent } from '../../src/operators/distinct-recent.js';

const marbles = (test: (helpers: RunHelpers) => void): void => {
  new TestScheduler((actual, expected) => {
    expect(actual).toEqual(expected);
  }).run(test);
};

const frame = (text: string, at: number, connection = 1) =>
  new Frame('market', Buffer.from(text), false, at, connection);
const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 0 });
const gap: FeedEvent = { type: 'gap', from: 0, to: 1, durationMs: 1, failure };

describe('distinctRecent', () => {
  it('drops an item whose key first arrived less than `ttlMs` ago', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  --a-b-a-a-a-b--|');
      const sub = '         ^--------------!';
      const expected = '    --a-b-----a-b--|';
      const result = source.pipe(distinctRecent((item) => item, { ttlMs: 8 }));
      const later = hot('   --a-------a|').pipe(distinctRecent((item) => item, { ttlMs: 9 }));
      expectObservable(result).toBe(expected);
      expectObservable(later).toBe('--a--------|');
      expectSubscriptions(source.subscriptions).toBe(sub);
    });
  });

  it('errors with the source, and unsubscribes from it', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  aab#');
      expectObservable(source.pipe(distinctRecent((item) => item))).toBe('a-b#');
      expectObservable(source.pipe(distinctRecent((item) => item)), '--!').toBe('a--');
      expectSubscriptions(source.subscriptions).toBe(['^--!', '^-!']);
    });
  });

  it('stores the last `max` keys', () => {
    const seen: string[] = [];
    from('abcabcca')
      .pipe(distinctRecent((item) => item, { max: 2 }))
      .subscribe((item) => seen.push(item));
    expect(seen.join('')).toBe('abcabca');
  });

  it('uses the time of the frames, also in a recording', () => {
    const seen: string[] = [];
    from([frame('a', 0), frame('b', 59_999), frame('a', 59_999), frame('a', 60_000), frame('b', 60_001)])
      .pipe(distinctRecent((each) => each.text()))
      .subscribe((each) => seen.push(`${each.text()} ${each.receivedAt}`));
    expect(seen).toEqual(['a 0', 'b 59999', 'a 60000']);
  });

  it('never decreases the time', () => {
    const seen: string[] = [];
    from([frame('a', 1_000), frame('b', 500), frame('b', 1_099), frame('b', 1_100)])
      .pipe(distinctRecent((each) => each.text(), { ttlMs: 100 }))
      .subscribe((each) => seen.push(`${each.text()} ${each.receivedAt}`));
    expect(seen).toEqual(['a 1000', 'b 500', 'b 1100']);
  });

  it('uses the time of the frame for a decoded value', () => {
    const decoded = (n: number, at: number) => new Decoded({ n }, frame('', at));
    const seen: number[] = [];
    from([decoded(1, 0), decoded(1, 5), decoded(2, 6), decoded(1, 10)])
      .pipe(distinctRecent((each) => each.value.n, { ttlMs: 10 }))
      .subscribe((each) => seen.push(each.frame.receivedAt));
    expect(seen).toEqual([0, 6, 10]);
  });

  it('emits lifecycle events unchanged, in order', () => {
    const events: FeedEvent[] = [frame('a', 0), gap, gap, frame('a', 1, 2), gap, frame('b', 2, 2)];
    const seen: string[] = [];
    from(events)
      .pipe(distinctRecent((each) => each.text()))
      .subscribe((event) => seen.push(event.type === 'frame' ? event.text() : event.type));
    expect(seen).toEqual(['a', 'gap', 'gap', 'gap', 'b']);
  });

  it('compares keys as a Map does', () => {
    const object = {};
    const seen: unknown[] = [];
    from([NaN, NaN, undefined, undefined, object, {}, object, '1', 1])
      .pipe(distinctRecent((item) => item))
      .subscribe((item) => seen.push(item));
    expect(seen).toEqual([NaN, undefined, object, {}, '1', 1]);
  });

  it('errors when `key` throws', () => {
    const mine = new Error('mine');
    const source = new Subject<number>();
    const seen: unknown[] = [];
    source
      .pipe(
        distinctRecent(() => {
          throw mine;
        }),
      )
      .subscribe({ error: (error) => seen.push(error) });
    source.next(1);
    expect([seen, source.observed]).toEqual([[mine], false]);
  });

  it('handles a consumer that pushes to the source during an emission', () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    source.pipe(distinctRecent((n) => n)).subscribe((n) => {
      seen.push(n);
      source.next(n);
      if (n < 3) source.next(n + 1);
    });
    source.next(1);
    expect(seen).toEqual([1, 2, 3]);
  });

  it('has separate keys for each subscription', () => {
    const operated = from([1, 1, 2]).pipe(
      distinctRecent((n) => n),
      toArray(),
    );
    const seen: number[][] = [];
    operated.subscribe((all) => seen.push(all));
    operated.subscribe((all) => seen.push(all));
    expect(seen).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it('has the same results as a plain list of keys and times', () => {
    const items = fc.array(fc.record({ key: fc.nat({ max: 8 }), wait: fc.integer({ min: -3, max: 12 }) }), {
      maxLength: 150,
      size: 'max',
    });
    fc.assert(
      fc.property(items, fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 40 }), (waits, max, ttlMs) => {
        let at = 100;
        const frames = waits.map(({ key, wait }) => frame(String(key), (at += wait)));
        let now = 0;
        let known: { key: string; at: number }[] = [];
        const expected = frames.filter((each) => {
          now = Math.max(now, each.receivedAt);
          known = known.filter((entry) => now - entry.at < ttlMs);
          if (known.some((entry) => entry.key === each.text())) return false;
          known = [...known, { key: each.text(), at: now }].slice(-max);
          return true;
        });
        const seen: Frame[] = [];
        from(frames)
          .pipe(distinctRecent((each) => each.text(), { max, ttlMs }))
          .subscribe((each) => seen.push(each));
        expect(seen).toEqual(expected);
      }),
    );
  });

  it('takes the same time per item for any number of stored keys', () => {
    const started = process.cpuUsage();
    let passed = 0;
    from({ length: 300_000 } as ArrayLike<undefined>)
      .pipe(
        map((_, index) => index),
        distinctRecent((n) => n, { max: 100_000 }),
      )
      .subscribe(() => (passed += 1));
    expect(passed).toBe(300_000);
    // CPU time of this process, because other processes may use the CPU. A search of all keys for each item takes minutes.
    expect(process.cpuUsage(started).user).toBeLessThan(10_000_000);
  });

  it('refuses invalid options at once', () => {
    const callWith =
      (options: unknown, key: unknown = String) =>
      () =>
        distinctRecent(key as () => never, options as object);
    for (const [options, message] of [
      [{ max: 0 }, /`max` must be a whole number, 1 or more, got 0/],
      [{ max: Infinity }, /`max`/],
      [{ ttlMs: 0 }, /`ttlMs` must be a number of ms above 0, got 0/],
      [{ scheduler: 1 }, /`scheduler` must be an RxJS scheduler/],
      [{ ttl: 1 }, /`ttl` must be left out: the options are max, ttlMs, scheduler/],
    ] as const)
      expect(callWith(options)).toThrow(
        expect.objectContaining({ code: 'invalid-options', message: expect.stringMatching(message) }),
      );
    expect(callWith({}, 'id')).toThrow(/`key` must be a function/);
  });
});
