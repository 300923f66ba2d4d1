import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { concat, defer, EMPTY, from, lastValueFrom, map, of, type OperatorFunction, retry } from 'rxjs';
import { Subject, throwError, toArray, VirtualTimeScheduler } from 'rxjs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as t from 'io-ts';
import type { FeedEvent } from '../../../src/protocol/event.js';
import { countWindow } from '../../../src/operators/count-window.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import { decodeEither } from '../../../src/operators/decode-either.js';
import { recordTo } from '../../../src/operators/node/record-to.js';
import { replay$ } from '../../../src/operators/node/replay.js';
import { timeOf } from '../../../src/operators/items/item.js';
import { type Replayed, ReplayedFrame } from '../../../src/operators/items/replayed.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import { disconnected, frameOf, gapOf, lost, opened, requested } from '../stream.js';
import { stopped, words } from './window-words.js';

const start = Date.now() - (Date.now() % 500);
const recorded: readonly FeedEvent[] = [
  opened(start),
  frameOf('1', start + 10),
  frameOf('2', start + 90),
  gapOf(start + 95, start + 330),
  frameOf('3', start + 340),
  frameOf('4', start + 410),
];

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'windows-'));
  path = join(folder, 'feed.ndjson');
  await lastValueFrom(from(recorded).pipe(recordTo(path)));
});
afterAll(() => rm(folder, { recursive: true }));

const windowsAt = (speed: number) =>
  lastValueFrom(
    replay$(path, { speed }).pipe(
      tumblingWindow({ lengthMs: 100 }),
      map(({ start: at, count, complete, gaps }) => [at - start, count, complete, gaps.length]),
      toArray(),
    ),
  );

describe('windows over a recording', () => {
  it('are the same at every speed: no clock makes a window in a recorded outage complete', async () => {
    const expected = [
      [0, 2, false, 1],
      [100, 0, false, 1],
      [200, 0, false, 1],
      [300, 1, false, 1],
      [400, 1, false, 0],
    ];
    expect(await windowsAt(Infinity)).toEqual(expected);
    expect(await windowsAt(1)).toEqual(expected);
    expect(await windowsAt(20)).toEqual(expected);
  });

  it('leave no timer that could close them, and use the clock again when a live feed follows', () => {
    const scheduler = new VirtualTimeScheduler();
    const emitted: string[] = [];
    const live$ = new Subject<FeedEvent>();
    const replayed = (text: string, at: number): Replayed => {
      const { feed, data } = frameOf(text);
      return new ReplayedFrame(feed, data, false, at, 1, 0);
    };
    concat(of(replayed('a', 3), replayed('b', 14)), live$)
      .pipe(tumblingWindow({ lengthMs: 10, scheduler }), words())
      .subscribe((line) => emitted.push(line));
    const live: readonly FeedEvent[] = [requested(200), opened(205), frameOf('c', 206)];
    for (const event of live) scheduler.schedule(() => live$.next(event), timeOf(event));
    scheduler.maxFrames = 199;
    scheduler.flush();
    expect(emitted).toEqual(['0-10 a']);
    scheduler.maxFrames = 225;
    scheduler.flush();
    expect(emitted.slice(1, -2).every((line) => / gap 14-\d+ incomplete$/.test(line))).toBe(true);
    expect(emitted.slice(-2)).toEqual(['200-210 c gap 14-205 incomplete', '210-220']);
    live$.complete();
  });

  it('use the time of the outputs of decodeEither', async () => {
    const windows$ = from<FeedEvent[]>([opened(0), frameOf('1', 5), frameOf('"x"', 15), frameOf('3', 25)]).pipe(
      decodeEither(t.number),
      tumblingWindow({ lengthMs: 10, scheduler: stopped() }),
      map(({ start: at, count }) => [at, count]),
      toArray(),
    );
    expect(await lastValueFrom(windows$)).toEqual([
      [0, 1],
      [10, 1],
      [20, 1],
    ]);
  });
});

describe('windows over a feed with a new subscription', () => {
  const first: readonly FeedEvent[] = [requested(0), opened(0), frameOf('a', 5), frameOf('b', 12)];
  const second: readonly FeedEvent[] = [
    requested(40),
    opened(43),
    frameOf('c', 44),
    frameOf('d', 51),
    frameOf('e', 60),
  ];

  /** A feed that stops with an error and has a second subscription. */
  const retried = () => {
    const attempts = [
      concat(
        from(first),
        throwError(() => new Error('stopped')),
      ),
      from(second),
    ];
    return defer(() => attempts.shift() ?? EMPTY).pipe(retry({ count: 1 }));
  };

  it('are not complete during the outage, without an event of its beginning', () => {
    const emitted: string[] = [];
    retried()
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => emitted.push(line));
    expect(emitted).toEqual([
      '0-10 a',
      '10-20 b gap 12-20 incomplete',
      '20-30 gap 12-30 incomplete',
      '30-40 gap 12-40 incomplete',
      '40-50 c gap 12-43 incomplete',
      '50-60 d',
      '60-70 e incomplete',
    ]);
  });

  it('are not complete since the last frame', () => {
    const emitted: string[] = [];
    from<FeedEvent[]>([opened(0), frameOf('a', 1), frameOf('b', 6), requested(8), opened(9), frameOf('c', 11)])
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => emitted.push(line));
    expect(emitted[0]).toBe('0-10 ab gap 6-9 incomplete');
  });

  it('of a number of items are not complete either', () => {
    const emitted: string[] = [];
    retried()
      .pipe(countWindow(3), words())
      .subscribe((line) => emitted.push(line));
    expect(emitted).toEqual(['5-44 abc gap 12-43 incomplete', '51-60 de incomplete']);
  });

  it.each<[string, readonly FeedEvent[], string]>([
    ['that was open without frames', [opened(1)], '8-9 cd gap 1-7 incomplete'],
    ['that was open before', [frameOf('a', 1)], '1-8 ac gap 1-7 incomplete'],
    ['that reported a gap', [gapOf(0, 1)], '8-9 cd gap 0-1 gap 1-7 incomplete'],
    ['that never was open', [requested(1)], '8-9 cd'],
  ])('have the expected gaps for a feed %s', (_name, before, line) => {
    const emitted: string[] = [];
    from([...before, requested(6), opened(7), frameOf('c', 8), frameOf('d', 9)])
      .pipe(countWindow(2), words())
      .subscribe((each) => emitted.push(each));
    expect(emitted[0]).toBe(line);
  });

  it.each<[string, OperatorFunction<FeedEvent, FeedWindow<unknown>>]>([
    ['of time', tumblingWindow({ lengthMs: 1_000, scheduler: stopped() })],
    ['of a number of items', countWindow(9)],
  ])('use the time of the error that stopped the feed: windows %s', (_name, window) => {
    const emitted: string[] = [];
    const source$ = concat(
      from<FeedEvent[]>([opened(0), frameOf('a', 3)]),
      throwError(() => lost(2)),
    );
    source$.pipe(window, words()).subscribe({ next: (line) => emitted.push(line), error: () => emitted.push('#') });
    expect(emitted).toEqual([expect.stringMatching(/^\d+-\d+ a gap 2-\d+ incomplete$/), '#']);
  });

  it('are complete again after the opening, with an event of the end and no gap', () => {
    const emitted: string[] = [];
    from([...first, disconnected(15), ...second])
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => emitted.push(line));
    expect(emitted.slice(-3)).toEqual(['40-50 c gap 15-43 incomplete', '50-60 d', '60-70 e incomplete']);
  });
});
