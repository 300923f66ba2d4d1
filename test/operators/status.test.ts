import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type Observable,
  type SchedulerLike,
  Subject,
  Subscription,
  VirtualTimeScheduler,
  concat,
  defer,
  from,
  throwError,
} from 'rxjs';
import type { DropReport } from '../../src/operators/bounded/bounded-queue.js';
import { type ConnectionStatus, connectionStatus } from '../../src/operators/connection-status.js';
import { type FeedStats, feedStats } from '../../src/operators/feed-stats.js';
import { Conflated, Decoded } from '../../src/operators/items/item.js';
import { shareFeed } from '../../src/operators/share-feed.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/browser/relay-error.js';
import type { Opened } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import {
  disconnected,
  frameOf,
  gapOf,
  issued,
  lost,
  marbles,
  opened,
  opening,
  reconnecting,
  requested,
  watermark,
} from './stream.js';

const refusal = { stage: 'ticket', status: 503, closeCode: undefined } as const;
const down = (since: number, attempt: number, nextAttemptAt?: number, failure?: TradeFeedError): ConnectionStatus => {
  return { state: 'reconnecting', since, nextAttemptAt, attempt, failure };
};

const events = {
  t: requested(1),
  i: issued(2),
  o: opened(10),
  f: frameOf('f', 12),
  d: { ...disconnected(20), at: 21 },
  r: reconnecting(21, 100),
  u: requested(121),
  e: disconnected(122, refusal),
  s: reconnecting(123, 200, 2),
  v: requested(323),
  p: opened(330, 2),
  g: gapOf(20, 330),
  L: { state: 'live', since: 330, connection: 2 } as const,
};

describe('connectionStatus', () => {
  it('emits each status once: connecting, live, reconnecting with the time of the next attempt, attempting, live', () => {
    const values = {
      ...{ C: { state: 'connecting', since: 1 }, O: { state: 'live', since: 10, connection: 1 }, L: events.L },
      ...{ W: down(20, 1, 121, lost(20)), A: down(20, 1, undefined, lost(20)) },
      ...{ X: down(20, 2, 323, lost(122, refusal)), Y: down(20, 2, undefined, lost(122, refusal)) },
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-i-o-f-f-(dr)-u-(es)-v-i-(pg)-f-|', events);
      const sub = '         ^---------------------------------!';
      const expected = '    -C---O-----W----A-X----Y---L------|';
      expectObservable(source$.pipe(connectionStatus())).toBe(expected, values);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it.each(['cluster-away', 'cluster-behind'] as const)(
    'is reconnecting while a replica receives no messages (%s), although it makes no attempt',
    (code) => {
      const failure = new TradeFeedError({
        ...{ stage: 'stream', code, verdict: 'renew', summary: 'Away.', advice: 'Wait.', endedAt: 20 },
      });
      const states: ConnectionStatus[] = [];
      const source = new Subject<unknown>();
      source.pipe(connectionStatus()).subscribe((status) => states.push(status));
      for (const event of [opened(10), { type: 'disconnected', at: 21, failure }, opened(30, 2)]) source.next(event);
      expect(states.slice(1)).toEqual([down(20, 1, undefined, failure), { state: 'live', since: 30, connection: 2 }]);
    },
  );

  it('counts from the first attempt if none has opened a connection yet', () => {
    const values = { C: { state: 'connecting', since: 1 }, X: down(122, 2, 323, lost(122, refusal)) };
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('-t-(es)-', events).pipe(connectionStatus())).toBe('-C-X----', values);
    });
  });

  it('is stopped by an error even if no event came before it', () => {
    const thrown = new Error('no space left');
    const seen: unknown[] = [];
    concat(
      [events.o],
      throwError(() => thrown),
    )
      .pipe(connectionStatus())
      .subscribe({ next: (status) => seen.push(status), error: (error) => seen.push(error) });
    const failure = expect.objectContaining({ code: 'relay-source-failed', cause: thrown });
    expect(seen).toMatchObject([{ state: 'live' }, { state: 'stopped', failure }, thrown]);
  });
});

describe('shareFeed', () => {
  it('opens one connection for all subscribers, and gives a late one the values from then on', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-a-b-c-d-');
      const shared$ = source$.pipe(shareFeed({ lingerMs: 3 }));
      const first = '       ^-----!';
      const second = '      ----^---!';
      expectObservable(shared$, first).toBe(' -a-b-c');
      expectObservable(shared$, second).toBe('-----c-d');
      expectSubscriptions(source$.subscriptions).toBe('^----------!');
    });
  });

  it('first gives `opened` to a subscriber that joins while the connection settles, and the outage that goes on', () => {
    const [d, g, h] = [disconnected(0), gapOf(0, 8), gapOf(8, 18)];
    const o: Opened = { ...opening(2), completeFrom: 18 };
    const values = { d, o, g, f: frameOf('f', 8), h, e: frameOf('e', 19) };
    marbles(({ cold, expectObservable }, scheduler) => {
      const shared$ = cold('        d-o-----(gf)------he', values).pipe(shareFeed({ lingerMs: 0, scheduler }));
      expectObservable(shared$).toBe('                d-o-----(gf)------he', values);
      expectObservable(shared$, '---^').toBe('        ---(do)-(gf)------he', values);
      expectObservable(shared$, '------------^').toBe('------------(dog)-he', values);
    });
  });

  it('gives no `opened` to a subscriber that joins once the connection is complete, even if no frame has shown it', () => {
    const values = { o: opening(0), f: frameOf('f', 600) };
    marbles(({ cold, expectObservable }, scheduler) => {
      const shared$ = cold('o 599ms f', values).pipe(shareFeed({ lingerMs: 0, scheduler }));
      expectObservable(shared$).toBe('o 599ms f', values);
      expectObservable(shared$, '499ms ^').toBe('499ms o 100ms f', { ...values, o: opening(499) });
      expectObservable(shared$, '500ms ^').toBe('600ms f', values);
    });
  });

  it('first gives the time of the stream to a late subscriber, if the stream has its own', () => {
    const values = { o: opened(0), w: watermark(0), f: frameOf('f', 1), v: watermark(2), g: frameOf('g', 5) };
    marbles(({ cold, expectObservable }, scheduler) => {
      const shared$ = cold('(ow)f-v-g', values).pipe(shareFeed({ lingerMs: 0, scheduler }));
      expectObservable(shared$).toBe('(ow)f-v-g', values);
      expectObservable(shared$, '-----^').toBe('-----wv-g', values);
    });
  });

  it('gives a value to the subscribers that were there when it arrived and still are', () => {
    const source = new Subject<string>();
    const shared$ = source.pipe(shareFeed());
    const received: string[] = [];
    const first = shared$.subscribe((value) => {
      received.push(`first ${value}`);
      second.unsubscribe();
      if (value === 'a') third.add(shared$.subscribe((next) => received.push(`joined ${next}`)));
    });
    const second = shared$.subscribe((value) => received.push(`second ${value}`));
    const third = shared$.subscribe((value) => received.push(`third ${value}`));
    source.next('a');
    source.next('b');
    expect(received).toEqual(['first a', 'third a', 'first b', 'third b', 'joined b']);
    source.complete();
    expect([first.closed, third.closed]).toEqual([true, true]);
  });

  it('closes the connection lingerMs after the last subscriber has left, 1 s by default', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      for (const [lingerMs, sub] of [
        [5, '^-------!'],
        [0, '^--!'],
        [undefined, '^ 1002ms !'],
      ] as const) {
        const source$ = cold('a-');
        expectObservable(source$.pipe(shareFeed({ lingerMs })), '^--!').toBe('a');
        expectSubscriptions(source$.subscriptions).toBe(sub);
      }
    });
  });

  it('errors for all subscribers when the feed stops, and starts over for a new subscriber', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const attempts = [cold('-a-#'), cold('-b-|'), cold('-c-')];
      let n = 0;
      const source$: Observable<string> = defer(() => attempts[n++]!);
      const shared$ = source$.pipe(shareFeed({ lingerMs: 2 }));
      expectObservable(shared$).toBe('               -a-#');
      expectObservable(shared$, '--^').toBe('        ---#');
      expectObservable(shared$, '----^').toBe('      -----b-|');
      expectObservable(shared$, '---------^-!').toBe('----------c');
      for (const [at, sub] of ['^--!', '----^--!', '---------^---!'].entries())
        expectSubscriptions(attempts[at]!.subscriptions).toBe(sub);
    });
  });
});

const stats = (from: number, to: number, figures: Partial<FeedStats> = {}): FeedStats => ({
  type: 'stats',
  ...{ from, to, frames: 0, bytes: 0, framesPerSecond: 0, bytesPerSecond: 0, totalFrames: 0, totalBytes: 0 },
  ...{ gaps: 0, lostMs: 0, reconnects: {}, dropped: 0 },
  ...figures,
});

const report = (dropped: number): DropReport => {
  const overflow = { reason: 'overflow', droppedBytes: 0, from: 0, to: 0 } as const;
  return { ...overflow, dropped, total: dropped };
};

describe('feedStats', () => {
  const f = frameOf('12345');
  const h = frameOf('é');

  it('counts gaps, lost time and reconnects by cause, and an ongoing outage up to the known time', () => {
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
      const lost = { 'connection-lost': 1 };
      const refused = { ...lost, 'credential-service-unavailable': 1 };
      expectObservable(source$.pipe(feedStats({ everyMs: 5, scheduler })), '^---------------!').toBe(expected, {
        A: stats(0, 5, { gaps: 1, lostMs: 2, reconnects: lost }),
        B: stats(5, 10, { gaps: 1, lostMs: 7, reconnects: refused }),
        C: stats(10, 15, { gaps: 2, lostMs: 11, reconnects: { ...refused, 'server-shutdown': 1 } }),
      });
    });
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

  /** Returns the figures of events that all arrive at one time, in epoch ms. */
  const figuresOf = (now: number, ...events: readonly unknown[]): FeedStats => {
    const scheduler: SchedulerLike = { now: () => now, schedule: () => new Subscription() };
    const seen: FeedStats[] = [];
    from(events)
      .pipe(feedStats({ scheduler }))
      .subscribe((figures) => seen.push(figures));
    return seen[0] as FeedStats;
  };

  it("counts items of any kind with the bytes of their frame, if any, and doesn't count events", () => {
    const relayed = new Frame('raw', new Uint8Array(5), true, 1, 1);
    const value = new Decoded('a value much longer than its payload', frameOf('1234567'));
    const items = [frameOf('ü'), frameOf(''), value, new Conflated('key', value, 9), relayed, new Decoded(1, relayed)];
    expect(figuresOf(1, ...items)).toMatchObject({ frames: 6, bytes: 2 + 0 + 7 + 7 + 5 + 5, totalFrames: 6 });
    const others = ['ab', new Uint8Array(5), 7, null, undefined, { type: 'trade' }];
    expect(figuresOf(1, ...others, opened(3), disconnected(4), gapOf(4, 6))).toMatchObject({ frames: 6, bytes: 9 });
  });

  it('counts the frames that a relay skipped as dropped', () => {
    const skipped = [{ ...gapOf(1, 2), missed: 7 }, gapOf(3, 4), { ...gapOf(5, 6), missed: 1 }];
    expect(figuresOf(500, ...skipped)).toMatchObject({ dropped: 8 });
  });

  it('counts no outage of the connection to a relay, because nothing may have been missed', () => {
    const lost = { ...disconnected(2), failure: relayError({ code: 'relay-lost', endedAt: 2 }) };
    expect(figuresOf(500, opened(0), lost)).toMatchObject({ gaps: 0, lostMs: 0 });
  });

  it('counts each frame in exactly one period, however long the periods are', () => {
    const step = fc.oneof({ weight: 5, arbitrary: fc.string() }, { weight: 1, arbitrary: fc.constant('read') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const scheduler = new VirtualTimeScheduler(undefined, 0);
        const feed$ = new Subject<unknown>();
        const [sent, emitted] = [[0, 0] as [number, number], [0, 0] as [number, number]];
        feed$.pipe(feedStats({ everyMs: 1, scheduler })).subscribe(({ frames, bytes, totalFrames, totalBytes }) => {
          emitted[0] += frames;
          emitted[1] += bytes;
          expect([emitted, [totalFrames, totalBytes]]).toEqual([sent, sent]);
        });
        for (const each of [...steps, 'read']) {
          if (each === 'read') {
            scheduler.maxFrames += 1;
            scheduler.flush();
            expect(emitted).toEqual(sent);
            continue;
          }
          const frame = frameOf(each);
          feed$.next(sent[0] % 2 === 0 ? frame : new Decoded(each, frame));
          sent[0] += 1;
          sent[1] += frame.data.length;
        }
      }),
    );
  });
});
