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
  it('are the same at every speed: no clock calls a window in a recorded outage complete', async () => {
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

  it('leave no timer that could close them, and go by the clock again with the live feed behind it', () => {
    const scheduler = new VirtualTimeScheduler();
    const told: string[] = [];
    const live$ = new Subject<FeedEvent>();
    const replayed = (text: string, at: number): Replayed => {
      const { feed, data } = frameOf(text);
      return new ReplayedFrame(feed, data, false, at, 1, 0);
    };
    concat(of(replayed('a', 3), replayed('b', 14)), live$)
      .pipe(tumblingWindow({ lengthMs: 10, scheduler }), words())
      .subscribe((line) => told.push(line));
    const live: readonly FeedEvent[] = [requested(200), opened(205), frameOf('c', 206)];
    for (const event of live) scheduler.schedule(() => live$.next(event), timeOf(event));
    scheduler.maxFrames = 199;
    scheduler.flush();
    expect(told).toEqual(['0-10 a']);
    scheduler.maxFrames = 225;
    scheduler.flush();
    expect(told.slice(1, -2).every((line) => / gap 14-\d+ incomplete$/.test(line))).toBe(true);
    expect(told.slice(-2)).toEqual(['200-210 c gap 14-205 incomplete', '210-220']);
    live$.complete();
  });

  it('keep the time of what decodeEither made', async () => {
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

describe('windows over a feed that somebody resubscribes', () => {
  const first: readonly FeedEvent[] = [requested(0), opened(0), frameOf('a', 5), frameOf('b', 12)];
  const second: readonly FeedEvent[] = [
    requested(40),
    opened(43),
    frameOf('c', 44),
    frameOf('d', 51),
    frameOf('e', 60),
  ];

  /** The feed stops with an error, and is subscribed to once more. */
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

  it('are not complete while it was down, though nothing told of its end', () => {
    const told: string[] = [];
    retried()
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => told.push(line));
    expect(told).toEqual([
      '0-10 a',
      '10-20 b gap 12-20 incomplete',
      '20-30 gap 12-30 incomplete',
      '30-40 gap 12-40 incomplete',
      '40-50 c gap 12-43 incomplete',
      '50-60 d',
      '60-70 e incomplete',
    ]);
  });

  it('for as long as nothing was heard: from the last frame on', () => {
    const told: string[] = [];
    from<FeedEvent[]>([opened(0), frameOf('a', 1), frameOf('b', 6), requested(8), opened(9), frameOf('c', 11)])
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => told.push(line));
    expect(told[0]).toBe('0-10 ab gap 6-9 incomplete');
  });

  it('nor is a window of so many items', () => {
    const told: string[] = [];
    retried()
      .pipe(countWindow(3), words())
      .subscribe((line) => told.push(line));
    expect(told).toEqual(['5-44 abc gap 12-43 incomplete', '51-60 de incomplete']);
  });

  it.each<[string, readonly FeedEvent[], string]>([
    ['that was open and silent', [opened(1)], '8-9 cd gap 1-7 incomplete'],
    ['that was open before', [frameOf('a', 1)], '1-8 ac gap 1-7 incomplete'],
    ['of which a gap was told', [gapOf(0, 1)], '8-9 cd gap 0-1 gap 1-7 incomplete'],
    ['that never was open', [requested(1)], '8-9 cd'],
  ])('nor is one of a feed %s', (_name, before, line) => {
    const told: string[] = [];
    from([...before, requested(6), opened(7), frameOf('c', 8), frameOf('d', 9)])
      .pipe(countWindow(2), words())
      .subscribe((each) => told.push(each));
    expect(told[0]).toBe(line);
  });

  it.each<[string, OperatorFunction<FeedEvent, FeedWindow<unknown>>]>([
    ['of time', tumblingWindow({ lengthMs: 1_000, scheduler: stopped() })],
    ['of so many items', countWindow(9)],
  ])('know from the error that it stops with when it ended: windows %s', (_name, window) => {
    const told: string[] = [];
    const source$ = concat(
      from<FeedEvent[]>([opened(0), frameOf('a', 3)]),
      throwError(() => lost(2)),
    );
    source$.pipe(window, words()).subscribe({ next: (line) => told.push(line), error: () => told.push('#') });
    expect(told).toEqual([expect.stringMatching(/^\d+-\d+ a gap 2-\d+ incomplete$/), '#']);
  });

  it('are complete again after the opening, when its end was told and no gap', () => {
    const told: string[] = [];
    from([...first, disconnected(15), ...second])
      .pipe(tumblingWindow({ lengthMs: 10, scheduler: stopped() }), words())
      .subscribe((line) => told.push(line));
    expect(told.slice(-3)).toEqual(['40-50 c gap 15-43 incomplete', '50-60 d', '60-70 e incomplete']);
  });
});
