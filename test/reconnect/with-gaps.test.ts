import { describe, expect, it } from '@jest/globals';
import { TestScheduler } from 'rxjs/testing';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { Disconnected, Gap, LifecycleEvent, Opened } from '../../src/protocol/event.js';
import type { FailureFacts } from '../../src/protocol/failures/trade-feed-error.js';
import { withGaps } from '../../src/reconnect/with-gaps.js';

const opened = (connection: number, at: number): Opened => ({ type: 'opened', at, feed: 'market', connection });
const disconnected = (at: number, facts: FailureFacts): Disconnected => ({
  type: 'disconnected',
  at,
  failure: createTradeFeedError({ endedAt: at, ...facts }),
});

// Small letters are events. A capital letter after an `opened` is its gap.
const t: LifecycleEvent = { type: 'ticket-requested', at: 1, feed: 'market' };
const i: LifecycleEvent = { type: 'ticket-issued', at: 2, feed: 'market', expiresAt: '2026-11-20T12:00:00Z' };
const r: LifecycleEvent = { type: 'reconnecting', at: 3, delayMs: 5, attempt: 1, verdict: 'backoff' };
const o = opened(1, 1_000);
const d = disconnected(2_000, { stage: 'stream', closeCode: 1001 });
const p = opened(2, 2_700);
const e = disconnected(4_000, { stage: 'stream', closeCode: 1006 });
const q = opened(3, 9_000);
const h = disconnected(2_100, { stage: 'handshake', status: 503 });
const k = disconnected(2_200, { stage: 'ticket', status: 503 });
const G: Gap = { type: 'gap', from: 2_000, to: 2_700, durationMs: 700, failure: d.failure };
const H: Gap = { type: 'gap', from: 4_000, to: 9_000, durationMs: 5_000, failure: e.failure };
const events: Readonly<Record<string, LifecycleEvent>> = { t, i, r, o, d, p, e, q, h, k, G, H };

const check = (source: string, expected: string, more: Readonly<Record<string, LifecycleEvent>> = {}, sub?: string) => {
  new TestScheduler((actual, wanted) => {
    expect(actual).toEqual(wanted);
  }).run(({ cold, expectObservable, expectSubscriptions }) => {
    const values = { ...events, ...more };
    const source$ = cold(source, values);
    expectObservable(source$.pipe(withGaps()), sub).toBe(expected, values);
    if (sub !== undefined) expectSubscriptions(source$.subscriptions).toBe(sub);
  });
};

describe('withGaps', () => {
  it('passes all events on in order, without a gap after the first connection', () => {
    const source = '  t-i-o---';
    const sub = '     ^-------!';
    const expected = 't-i-o---';
    check(source, expected, {}, sub);
  });

  it('adds a gap after the opening that ends an outage, in the same moment', () => {
    const source = '  -o-d-r-t-i-p-----';
    const expected = '-o-d-r-t-i-(pG)--';
    check(source, expected);
  });

  it('reports each outage once, with its own failure', () => {
    const source = '  -o-d-p-----e-q----';
    const expected = '-o-d-(pG)--e-(qH)-';
    check(source, expected);
  });

  it('does not report an outage again when a connection opens without an outage', () => {
    const source = '  -o-d-p-----q-';
    const expected = '-o-d-(pG)--q-';
    check(source, expected);
  });

  it('starts the gap at the end of the last open connection, however many attempts failed since', () => {
    const source = '  -o-d-t-k-r-t-i-h-r-p-----';
    const expected = '-o-d-t-k-r-t-i-h-r-(pG)--';
    check(source, expected);
  });

  it('reports no gap before the first connection, however many attempts failed', () => {
    const source = '  -k-r-h-r-o-';
    const expected = '-k-r-h-r-o-';
    check(source, expected);
  });

  it('starts the gap of a stalled connection when its last bytes arrived', () => {
    const s = disconnected(40_000, { stage: 'stream', code: 'connection-stalled', endedAt: 5_000 });
    const u = opened(2, 40_500);
    const S: Gap = { type: 'gap', from: 5_000, to: 40_500, durationMs: 35_500, failure: s.failure };
    check('  o-s-u----', 'o-s-(uS)', { s, u, S });
  });

  it('has no negative length if the clock was set back', () => {
    const u = opened(2, 1_500);
    const S: Gap = { type: 'gap', from: 1_500, to: 1_500, durationMs: 0, failure: d.failure };
    check('  o-d-u----', 'o-d-(uS)', { u, S });
  });

  it('ends as its source ends', () => {
    check('-o-d-|', '-o-d-|');
    check('-o-d-#', '-o-d-#');
  });

  it('unsubscribes from its source when the consumer unsubscribes', () => {
    const source = '  -o-d-p-----';
    const sub = '     ^---!';
    const expected = '-o-d';
    check(source, expected, {}, sub);
  });

  it('tracks the outages of each subscription separately', () => {
    new TestScheduler((actual, wanted) => {
      expect(actual).toEqual(wanted);
    }).run(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  -o-d-p----', events);
      const early = '       ^---------!';
      const late = '        ----^-----!';
      const expectedEarly = '   -o-d-(pG)-';
      const expectedLate = '    -----p----';
      const events$ = source.pipe(withGaps());
      expectObservable(events$, early).toBe(expectedEarly, events);
      expectObservable(events$, late).toBe(expectedLate, events);
      expectSubscriptions(source.subscriptions).toBe([early, late]);
    });
  });
});
