import { describe, expect, it } from '@jest/globals';
import { map, NEVER, type Observable } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import type { CliEvent, Ending } from '../../../src/cli/follow/event.js';
import { type Bounds, follow } from '../../../src/cli/follow/follow.js';
import type { FeedEvent } from '../../../src/index.js';
import { frameAt } from '../support/events.js';

const marbles = (
  body: (helpers: {
    cold: TestScheduler['createColdObservable'];
    expectObservable: TestScheduler['expectObservable'];
    expectSubscriptions: TestScheduler['expectSubscriptions'];
  }) => void,
): void => new TestScheduler((actual, expected) => expect(actual).toStrictEqual(expected)).run(body);

/** One letter for each step: `f` for a frame, `t` for a tick, and the first letter of an ending as a capital. */
const letters = (
  source$: Observable<FeedEvent>,
  bounds: Bounds = {},
  endings$: Observable<Ending> = NEVER,
): Observable<string> =>
  source$.pipe(
    follow('market', bounds, endings$),
    map(({ event }) => letterOf(event)),
  );

const letterOf = (event: CliEvent): string =>
  event.type === 'ended' ? event.ending.kind.charAt(0).toUpperCase() : event.type.charAt(0);

const f = frameAt(0, 'x');

describe('follow', () => {
  it('emits frames, and a tick every 500 ms, until it is interrupted', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>(' -f 700ms f', { f });
      const endings = cold<Ending>('   1201ms i', { i: { kind: 'interrupted', signal: 'SIGINT' } });
      const expected = '               -f 498ms t 201ms f 297ms t 200ms (I|)';
      const subscribed = '             ^ 1200ms !';
      expectObservable(letters(source, {}, endings)).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('ends with the last frame of the count', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>('--f-f-(fff)', { f });
      const expected = '              --f-f-(fC|)';
      const subscribed = '            ^-----!';
      expectObservable(letters(source, { count: 3 })).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('ends when the duration has passed, also without a frame', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>('-', { f });
      const expected = '              100ms (T|)';
      const subscribed = '            ^ 99ms !';
      expectObservable(letters(source, { durationMs: 100, count: 1 })).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('reports the failure that stops the feed as an ending', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(letters(cold<FeedEvent>('-f-#', { f }))).toBe('-f-(F|)');
      expectObservable(letters(cold<FeedEvent>('-f-#', { f }), { count: 2 })).toBe('-f-(F|)');
    });
  });

  it('has a separate tally for each subscription', () => {
    marbles(({ cold, expectObservable }) => {
      const frames = (source$: Observable<FeedEvent>) =>
        source$.pipe(
          follow('market', { count: 2 }, NEVER),
          map(({ tally }) => String(tally.frames)),
        );
      const counted$ = frames(cold<FeedEvent>('f-f', { f }));
      expectObservable(counted$).toBe('1-(22|)');
      expectObservable(counted$, '---^').toBe('---1-(22|)');
    });
  });
});
