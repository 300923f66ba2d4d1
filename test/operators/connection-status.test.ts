import { describe, expect, it } from '@jest/globals';
import { concat, Subject, throwError } from 'rxjs';
import { type ConnectionStatus, connectionStatus } from '../../src/operators/connection-status.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { disconnected, frameOf, gapOf, issued, lost, marbles, opened, reconnecting, requested } from './stream.js';

const refusal = { stage: 'ticket', status: 503, closeCode: undefined } as const;
const down = (
  since: number,
  attempt: number,
  nextAttemptAt: number | undefined,
  failure?: TradeFeedError,
): ConnectionStatus => ({
  state: 'reconnecting',
  since,
  nextAttemptAt,
  attempt,
  failure,
});

const events = {
  ...{
    t: requested(1),
    i: issued(2),
    o: opened(10),
    f: frameOf('f', 12),
    d: { ...disconnected(20), at: 21 },
    r: reconnecting(21, 100),
  },
  ...{
    u: requested(121),
    e: disconnected(122, refusal),
    s: reconnecting(123, 200, 2),
    v: requested(323),
    p: opened(330, 2),
  },
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

  it('is live since the current time if an item has no time', () => {
    const source$ = new Subject<unknown>();
    const seen: ConnectionStatus[] = [];
    source$.pipe(connectionStatus()).subscribe((status) => seen.push(status));
    const before = Date.now();
    source$.next({ price: 1 });
    expect(seen).toEqual([{ state: 'live', since: expect.any(Number), connection: 1 }]);
    expect(seen[0]?.since).toBeGreaterThanOrEqual(before);
  });
});
