import { describe, expect, it } from '@jest/globals';
import * as t from 'io-ts';
import { type Observable, type SchedulerLike, Subject, Subscription, VirtualTimeScheduler } from 'rxjs';
import {
  conflate,
  countWindow,
  decodeEither,
  decodeWith,
  distinctRecent,
  feedStats,
  freshness,
} from '../../src/index.js';
import { logEvents, mergeMapBounded, shareFeed, slidingWindow, toAsyncIterable } from '../../src/index.js';
import { filterValues, mapValues, tumblingWindow, whereBytes, whereField } from '../../src/index.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { MAX_TIMER_MS } from '../../src/protocol/validate.js';
import { frameOf, opened } from './stream.js';

/** About 35 years: a timer of Node would fire at once. */
const tooLong = 2 ** 40;

type Operator = (source: Observable<FeedEvent>) => Observable<unknown>;

/** Returns the delays an operator requests while a feed opens and emits a frame, until it's unsubscribed. */
const delaysOf = (operator: (scheduler: SchedulerLike) => Operator): (number | undefined)[] => {
  const delays: (number | undefined)[] = [];
  const schedule = (_work: unknown, delay?: number) => [new Subscription(), delays.push(delay)][0] as Subscription;
  const source = new Subject<FeedEvent>();
  const subscription = operator({ now: () => 0, schedule })(source).subscribe();
  source.next(opened(0));
  source.next(frameOf('a', 1));
  subscription.unsubscribe();
  return delays;
};

describe('a delay that is too long for a timer', () => {
  const operators: readonly (readonly [name: string, (scheduler: SchedulerLike) => Operator])[] = [
    ['shareFeed', (scheduler) => shareFeed({ lingerMs: tooLong, scheduler })],
    ['shareFeed, for ever', (scheduler) => shareFeed({ lingerMs: Infinity, scheduler })],
    ['feedStats', (scheduler) => feedStats({ everyMs: tooLong, scheduler })],
    ['feedStats, for ever', (scheduler) => feedStats({ everyMs: Infinity, scheduler })],
    ['tumblingWindow', (scheduler) => tumblingWindow({ lengthMs: tooLong, scheduler })],
    ['tumblingWindow from the start', (scheduler) => tumblingWindow({ lengthMs: tooLong, align: 'start', scheduler })],
    ['slidingWindow', (scheduler) => slidingWindow({ lengthMs: tooLong, everyMs: tooLong / 2, scheduler })],
    ['conflate, as long as it may be', (scheduler) => conflate(() => 1, MAX_TIMER_MS, { scheduler })],
  ];

  it.each(operators)('is shortened to the maximum delay by %s', (_name, operator) => {
    expect(delaysOf(operator)).toEqual([2 ** 31 - 1]);
  });

  it.each<[string, (scheduler: SchedulerLike) => Operator]>([
    ['tumblingWindow', (scheduler) => tumblingWindow({ lengthMs: tooLong, scheduler })],
    ['slidingWindow', (scheduler) => slidingWindow({ lengthMs: tooLong, everyMs: tooLong, scheduler })],
  ])('is split into several timers by %s', (_name, operator) => {
    const clock = new VirtualTimeScheduler();
    const source = new Subject<FeedEvent>();
    const emitted: number[] = [];
    const subscription = operator(clock)(source).subscribe(() => {
      emitted.push(clock.now());
      if (emitted.length === 2) subscription.unsubscribe();
    });
    source.next(opened(0));
    clock.flush();
    expect(emitted).toEqual([tooLong, 2 * tooLong]);
  });
});

type AnyOperator = (...args: never[]) => unknown;
const operators: Readonly<Record<string, AnyOperator>> = {
  ...{ conflate, countWindow, decodeEither, decodeWith, distinctRecent, feedStats, freshness, logEvents, shareFeed },
  ...{ mergeMapBounded, slidingWindow, toAsyncIterable, tumblingWindow, whereBytes },
  ...{ filterValues, mapValues, whereField },
};
const Count = t.type({ n: t.number });
const logger = { debug: () => 1, warn: () => 1, error: () => 1 };

describe('wrong options', () => {
  it.each<[name: string, args: readonly unknown[], message: string]>([
    ['conflate', [undefined, 1], '`key` must be a function'],
    ['conflate', [String], '`everyMs` must be a number of ms, above 0 and at most 2147483647'],
    ['conflate', [String, 1, { maxKeys: 0 }], '`maxKeys` must be a whole number, 1 or more, got 0'],
    ['conflate', [String, 1, { max: 1 }], "`max` doesn't exist: the options are maxKeys, scheduler"],
    ['countWindow', [], '`n` must be a whole number, 1 or more'],
    ['countWindow', [2, { maxFrames: 1 }], "`maxFrames` doesn't exist: the options are scheduler"],
    ['countWindow', [2, { seed: () => 0 }], '`add` must be a function'],
    ['decodeEither', [], '`codec` must be an io-ts codec or a Standard Schema'],
    ['decodeWith', [], '`codec` must be an io-ts codec or a Standard Schema'],
    ['decodeWith', [{ is: 1, decode: 2 }], '`codec` must be'],
    ['decodeWith', [Count, { onInvalid: 'ignore' }], "`onInvalid` must be 'drop' or 'error' or a function"],
    ['distinctRecent', [], '`key` must be a function'],
    ['distinctRecent', [String, { max: 0 }], '`max` must be a whole number, 1 or more, got 0'],
    ['distinctRecent', [String, { ttlMs: 0 }], '`ttlMs` must be a number of ms above 0, got 0'],
    ['feedStats', [{ everyMs: 0 }], '`everyMs`'],
    ['feedStats', [{ drops$: [] }], '`drops$`'],
    ['feedStats', [{ scheduler: 1 }], '`scheduler`'],
    ['freshness', [{}], '`maxAgeMs` must be set, or `factor`'],
    ['freshness', [{ maxAgeMs: 0 }], '`maxAgeMs`'],
    ['freshness', [{ factor: 0.5 }], '`factor`'],
    ['logEvents', [{ ...logger, info: () => 1, error: undefined }], '`logger`'],
    ['logEvents', [console, { level: 'trace' }], '`level`'],
    ['mergeMapBounded', [], '`project` must be a function'],
    ['mergeMapBounded', [String, { concurrency: 0 }], '`concurrency` must be a whole number, 1 or more, got 0'],
    ['shareFeed', [{ lingerMs: -1 }], '`lingerMs`'],
    ['slidingWindow', [{ lengthMs: 1 }], '`everyMs` must be a whole number of ms, 1 or more'],
    ['slidingWindow', [{ lengthMs: 5, everyMs: 6 }], '`everyMs` must be at most lengthMs (5), got 6'],
    ['toAsyncIterable', [{ capacity: 0 }], '`capacity` must be a whole number, 1 or more, got 0'],
    ['toAsyncIterable', [{ capacityBytes: 0 }], '`capacityBytes` must be a number of bytes above 0, got 0'],
    ['toAsyncIterable', [{ overflow: 'block' }], "`overflow` must be 'drop-oldest' or 'drop-newest' or 'error'"],
    ['toAsyncIterable', [{ bytesOf: 3 }], '`bytesOf` must be a function'],
    ['toAsyncIterable', [{ onDrop: 'log' }], '`onDrop` must be a function'],
    ['tumblingWindow', [{ lengthMs: 1.5 }], '`lengthMs` must be a whole number of ms, 1 or more, got 1.5'],
    ['tumblingWindow', [{ lengthMs: 1, maxFrames: 0 }], '`maxFrames` must be a whole number, 1 or more, got 0'],
    ['tumblingWindow', [{ lengthMs: 1, align: 'day' }], "`align` must be 'epoch' or 'start'"],
    ['tumblingWindow', [{ lengthMs: 1, allowedLatenessMs: -1 }], '`allowedLatenessMs` must be'],
    ['tumblingWindow', [{ lengthMs: 1, add: () => 0 }], '`seed` must be a function'],
    ['tumblingWindow', [{ lengthMs: 1, maxFrames: 1, seed: () => 0, add: () => 0 }], "`maxFrames` doesn't exist"],
    ['tumblingWindow', [{ lengthMs: 1, everyMs: 1 }], "`everyMs` doesn't exist: the options are lengthMs, maxFrames, "],
    ['mapValues', ['price'], '`fn` must be a function'],
    ['filterValues', [undefined], '`predicate` must be a function'],
    ['whereField', [undefined, 'a'], '`path` must be names'],
    ['whereField', ['tx..to', 'a'], '`path`'],
    ['whereField', ['tx[0]', 'a'], '`path`'],
    ['whereField', [Array(101).fill('a').join('.'), 'a'], 'at most 100 steps'],
    ['whereField', ['to'], '`accepted` must be a text, a number'],
    ['whereField', ['to', []], '`accepted`'],
    ['whereField', ['to', ['a', undefined]], '`accepted`'],
    ['whereField', ['to', NaN], '`accepted`'],
    ['whereField', ['to', { to: 'a' }], '`accepted`'],
    ['whereField', ['to', new Proxy(new Set(['a']), {})], '`accepted`'],
    ['whereField', ['to', new Set([{}])], '`accepted`'],
    ['whereField', ['to', new Map([['a', 1]])], '`accepted`'],
    ['whereField', ['to', 'a', { ignoreCase: 'yes' }], '`ignoreCase` must be true or false'],
    ['whereField', ['to', String, { ignoreCase: true }], '`ignoreCase` must be left out if'],
    ['whereBytes', [], '`needles` must be texts or byte arrays'],
    ['whereBytes', [{ length: 1 }], '`needles`'],
    ['whereBytes', ['a', ''], '`needles`'],
    ['whereBytes', [new Uint8Array(0)], '`needles`'],
  ])('of %s are refused in the call itself: %p', (name, args, message) => {
    const refused = expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) });
    expect(() => operators[name]!(...(args as never[]))).toThrow(refused);
  });

  it("don't include undefined, or Infinity where no limit makes sense", () => {
    expect(() => toAsyncIterable({ capacity: undefined, capacityBytes: Infinity })).not.toThrow();
  });
});
