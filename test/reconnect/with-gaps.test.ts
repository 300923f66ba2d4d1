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

// Small letters: what happened; the capital one behind an `opened` is its gap.
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
  it('passes everything on in its place; the first connection opens without a gap', () => {
    const source = '  t-i-o---';
    const sub = '     ^-------!';
    const expected = 't-i-o---';
    check(source, expected, {}, sub);
  });

  it('puts a gap behind the opening that ends an outage, in the same moment', () => {
    const source = '  -o-d-r-t-i-p-----';
    const expected = '-o-d-r-t-i-(pG)--';
    check(source, expected);
  });

  it('tells of each outage once, with its own failure', () => {
    const source = '  -o-d-p-----e-q----';
    const expected = '-o-d-(pG)--e-(qH)-';
    check(source, expected);
  });

  it('tells of an outage no second time when a connection opens without one', () => {
    const source = '  -o-d-p-----q-';
    const expected = '-o-d-(pG)--q-';
    check(source, expected);
  });

  it('begins the gap at the end of the last open connection, however many attempts failed since', () => {
    const source = '  -o-d-t-k-r-t-i-h-r-p-----';
    const expected = '-o-d-t-k-r-t-i-h-r-(pG)--';
    check(source, expected);
  });

  it('tells of no gap before the first connection, however many attempts failed', () => {
    const source = '  -k-r-h-r-o-';
    const expected = '-k-r-h-r-o-';
    check(source, expected);
  });

  it('begins the gap of a stalled connection when it was last heard', () => {
    const s = disconnected(40_000, { stage: 'stream', code: 'connection-stalled', endedAt: 5_000 });
    const u = opened(2, 40_500);
    const S: Gap = { type: 'gap', from: 5_000, to: 40_500, durationMs: 35_500, failure: s.failure };
    check('  o-s-u----', 'o-s-(uS)', { s, u, S });
  });

  it('has no negative length when the clock was set back meanwhile', () => {
    const u = opened(2, 1_500);
    const S: Gap = { type: 'gap', from: 1_500, to: 1_500, durationMs: 0, failure: d.failure };
    check('  o-d-u----', 'o-d-(uS)', { u, S });
  });

  it('ends as its source ends', () => {
    check('-o-d-|', '-o-d-|');
    check('-o-d-#', '-o-d-#');
  });

  it('leaves its source when the consumer leaves', () => {
    const source = '  -o-d-p-----';
    const sub = '     ^---!';
    const expected = '-o-d';
    check(source, expected, {}, sub);
  });

  it('gives each subscription outages of its own', () => {
    new TestScheduler((actual, wanted) => {
      expect(actual).toEqual(wanted);
    }).run(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('  -o-d-p----', events);
      const early = '       ^---------!';
      const late = '        ----^-----!';
      const toldEarly = '   -o-d-(pG)-';
      const toldLate = '    -----p----';
      const told$ = source.pipe(withGaps());
      expectObservable(told$, early).toBe(toldEarly, events);
      expectObservable(told$, late).toBe(toldLate, events);
      expectSubscriptions(source.subscriptions).toBe([early, late]);
    });
  });
});
