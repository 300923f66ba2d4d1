import { describe, expect, it } from '@jest/globals';
import { map, NEVER, take, VirtualTimeScheduler } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import type { DropReport } from '../../src/operators/bounded/drop-report.js';
import { feedStats } from '../../src/operators/feed-stats.js';
import type { FeedStats } from '../../src/operators/items/feed-tally.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import { disconnected, frameOf, gapOf, marbles, opened, watermark } from './stream.js';

const stats = (from: number, to: number, figures: Partial<FeedStats> = {}): FeedStats => ({
  type: 'stats',
  ...{ from, to, frames: 0, bytes: 0, framesPerSecond: 0, bytesPerSecond: 0, totalFrames: 0, totalBytes: 0 },
  ...{ gaps: 0, lostMs: 0, reconnects: {}, dropped: 0 },
  ...figures,
});

const report = (dropped: number): DropReport => ({
  reason: 'overflow',
  dropped,
  droppedBytes: 0,
  total: dropped,
  from: 0,
  to: 0,
});

describe('feedStats', () => {
  const f = frameOf('12345');
  const h = frameOf('é');

  it('emits the figures of each period, also of a period without frames', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source$ = cold('-f-(fh)------------', { f, h });
      const sub = '         ^-----------------!';
      const expected = '    -----A----B----C---';
      expectObservable(source$.pipe(feedStats({ everyMs: 5, scheduler })), sub).toBe(expected, {
        A: stats(0, 5, {
          frames: 3,
          bytes: 12,
          framesPerSecond: 600,
          bytesPerSecond: 2_400,
          totalFrames: 3,
          totalBytes: 12,
        }),
        B: stats(5, 10, { totalFrames: 3, totalBytes: 12 }),
        C: stats(10, 15, { totalFrames: 3, totalBytes: 12 }),
      });
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('emits the last figures when the source completes, and does not divide by zero', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const rest = {
        frames: 1,
        bytes: 5,
        framesPerSecond: 1_000 / 3,
        bytesPerSecond: 5_000 / 3,
        totalFrames: 1,
        totalBytes: 5,
      };
      expectObservable(cold('------f-|', { f }).pipe(feedStats({ everyMs: 5, scheduler }))).toBe('-----A--(B|)', {
        A: stats(0, 5),
        B: stats(5, 8, rest),
      });
      expectObservable(cold('(f|)', { f }).pipe(feedStats({ scheduler }))).toBe('(A|)', {
        A: stats(0, 0, { frames: 1, bytes: 5, totalFrames: 1, totalBytes: 5 }),
      });
    });
  });

  it('has periods of a second by default', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-').pipe(feedStats()), '^ 1s -!').toBe('1s A', { A: stats(0, 1_000) });
    });
  });

  it('counts gaps, lost time and reconnects by cause; an outage that is not over counts up to the known time', () => {
    const values = {
      d: disconnected(3),
      e: disconnected(8, { stage: 'ticket', status: 503, closeCode: undefined }),
      o: opened(12, 2),
      g: gapOf(3, 12),
      h: disconnected(13, { closeCode: 1001 }),
    };
    marbles(({ cold, expectObservable }, scheduler) => {
      const source$ = cold('---d----e---(ogh)', values);
      const expected = '    -----A----B----C-';
      expectObservable(source$.pipe(feedStats({ everyMs: 5, scheduler })), '^---------------!').toBe(expected, {
        A: stats(0, 5, { gaps: 1, lostMs: 2, reconnects: { 'connection-lost': 1 } }),
        B: stats(5, 10, {
          gaps: 1,
          lostMs: 7,
          reconnects: { 'connection-lost': 1, 'credential-service-unavailable': 1 },
        }),
        C: stats(10, 15, {
          gaps: 2,
          lostMs: 11,
          reconnects: { 'connection-lost': 1, 'credential-service-unavailable': 1, 'server-shutdown': 1 },
        }),
      });
    });
  });

  it('adds up the gaps; a clock that was set back does not reduce the lost time', () => {
    const values = { g: gapOf(3, 12), h: gapOf(20, 25), d: disconnected(99) };
    marbles(({ cold, expectObservable }, scheduler) => {
      expectObservable(
        cold('-(gh)-----d----', values).pipe(feedStats({ everyMs: 8, scheduler })),
        '^---------------!',
      ).toBe('--------A-------', { A: stats(0, 8, { gaps: 2, lostMs: 14 }) });
      expectObservable(cold('-d', values).pipe(feedStats({ everyMs: 8, scheduler })), '^--------!').toBe('--------A', {
        A: stats(0, 8, { gaps: 1, lostMs: 0, reconnects: { 'connection-lost': 1 } }),
      });
    });
  });

  it('uses the clock of the scheduler option', () => {
    const scheduler = new VirtualTimeScheduler();
    const seen: FeedStats[] = [];
    NEVER.pipe(feedStats({ scheduler }), take(2)).subscribe((figures) => seen.push(figures));
    scheduler.flush();
    expect(seen).toEqual([stats(0, 1_000), stats(1_000, 2_000)]);
  });

  it('adds up the drop reports, and continues after drops$ completes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const drops$ = cold(' -a--b-a|', { a: report(2), b: report(3) });
      const source$ = cold('-----------|');
      const expected = '    -----A----B(C|)';
      expectObservable(source$.pipe(feedStats({ everyMs: 5, drops$, scheduler }))).toBe(expected, {
        A: stats(0, 5, { dropped: 5 }),
        B: stats(5, 10, { dropped: 7 }),
        C: stats(10, 11, { dropped: 7 }),
      });
      expectSubscriptions(drops$.subscriptions).toBe('^------!');
    });
  });

  it('emits the last figures and errors with the source and with drops$, and unsubscribes from both', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const first = { framesPerSecond: 200, bytesPerSecond: 1_000, frames: 1, bytes: 5, totalFrames: 1, totalBytes: 5 };
      const rest = { framesPerSecond: 500, bytesPerSecond: 1_000, frames: 1, bytes: 2, totalFrames: 2, totalBytes: 7 };
      const values = { A: stats(0, 5, first), B: stats(5, 7, rest) };
      const drops$ = cold<DropReport>('-');
      const source$ = cold('-f----h#', { f, h });
      expectObservable(source$.pipe(feedStats({ everyMs: 5, drops$, scheduler }))).toBe('-----A-(B#)', values);
      expectSubscriptions(drops$.subscriptions).toBe('^------!');
      const open$ = cold('-f----h-', { f, h });
      const failing$ = cold<DropReport>('-------#');
      expectObservable(open$.pipe(feedStats({ everyMs: 5, drops$: failing$, scheduler }))).toBe('-----A-(B#)', values);
      expectSubscriptions(open$.subscriptions).toBe('^------!');
    });
  });

  it('emits the last figures when the source errors, with the drops until then', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const drops$ = cold('-a', { a: report(2) });
      expectObservable(cold('--#', undefined, 'mine').pipe(feedStats({ drops$, scheduler }))).toBe(
        '--(A#)',
        { A: stats(0, 2, { dropped: 2 }) },
        'mine',
      );
    });
  });

  it('counts separately for each subscription', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const stats$ = cold('f', { f }).pipe(feedStats({ everyMs: 5, scheduler }));
      const figures = {
        frames: 1,
        bytes: 5,
        framesPerSecond: 200,
        bytesPerSecond: 1_000,
        totalFrames: 1,
        totalBytes: 5,
      };
      expectObservable(stats$, '^-----!').toBe('-----A', { A: stats(0, 5, figures) });
      expectObservable(stats$, '--^-----!').toBe('-------A', { A: stats(2, 7, figures) });
    });
  });

  it.each<[string, object, string]>([
    ['no period', { everyMs: 0 }, '`everyMs`'],
    ['a value that is not an Observable', { drops$: [] }, '`drops$`'],
    ['no scheduler', { scheduler: 1 }, '`scheduler`'],
    ['an unknown option', { every: 1 }, '`every`'],
  ])('refuses %s at once', (_name, options, name) => {
    expect(() => feedStats(options)).toThrow(TradeFeedError);
    expect(() => feedStats(options)).toThrow(name);
  });

  it('counts no outage of the connection to a relay, because perhaps nothing was missed', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const lost = relayError({ code: 'relay-lost', endedAt: 2 });
      const events = { o: opened(0), x: { type: 'disconnected', at: 2, failure: lost } as const, p: opened(1) };
      const figures = cold('o-x----p-', events).pipe(
        feedStats({ everyMs: 4, scheduler }),
        map(({ gaps, lostMs }) => [gaps, lostMs]),
      );
      expectObservable(figures, '^--------!').toBe('----A---A', { A: [0, 0] });
    });
  });

  it('counts an outage of a delayed source up to its watermark, so that the total never decreases', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const end = disconnected(1);
      const events = { o: opened(0), x: end, w: watermark(3), p: opened(5), g: gapOf(1, 5, end.failure) };
      const figures = cold('ox------w--------(pg)', events).pipe(
        feedStats({ everyMs: 10, scheduler }),
        map(({ gaps, lostMs }) => [gaps, lostMs]),
      );
      expectObservable(figures, '^--------------------!').toBe('----------A---------B', { A: [1, 2], B: [1, 4] });
    });
  });
});
