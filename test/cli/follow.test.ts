import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, map, NEVER, type Observable } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { type Ending, endings$ } from '../../src/cli/delivery.js';
import { averageRate, type Bounds, type CliEvent, currentRate } from '../../src/cli/follow.js';
import { finish, follow, type Status, statusAfter, statusAt } from '../../src/cli/follow.js';
import { perTick } from '../../src/cli/commands/demo.js';
import type { FeedEvent } from '../../src/index.js';
import { frameAt, start } from './support/events.js';
import { fakeContext } from './support/fakes.js';

type Helpers = Parameters<Parameters<TestScheduler['run']>[0]>[0];
const marbles = (body: (helpers: Helpers) => void): void =>
  new TestScheduler((actual, expected) => expect(actual).toStrictEqual(expected)).run(body);

/** One letter for each step: `f` for a frame, `t` for a tick, and the first letter of an ending as a capital. */
const letters = (
  source$: Observable<FeedEvent>,
  bounds: Bounds = {},
  endings$: Observable<Ending> = NEVER,
): Observable<string> =>
  follow(source$, 'market', bounds, endings$).pipe(
    map(({ event }) => (event.type === 'ended' ? event.ending.kind.charAt(0).toUpperCase() : event.type.charAt(0))),
  );

const f = frameAt(0, 'x');

describe('follow', () => {
  it('emits frames, and a tick every 500 ms, until it is interrupted', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>(' -f 700ms f', { f });
      const endings = cold<Ending>('   1201ms i', { i: { kind: 'interrupted' } });
      const expected = '               -f 498ms t 201ms f 297ms t 200ms (I|)';
      const subscribed = '             ^ 1200ms !';
      expectObservable(letters(source, {}, endings)).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('ends with the last frame of the count, counting each subscription separately', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>('--f-f-(fff)', { f });
      const expected = '              --f-f-(fC|)';
      const subscribed = '            ^-----!';
      const followed$ = letters(source, { count: 3 });
      expectObservable(followed$).toBe(expected);
      expectObservable(followed$, '-------^').toBe('---------f-f-(fC|)');
      expectSubscriptions(source.subscriptions).toBe([subscribed, '-------^-----!']);
    });
  });

  it('ends when the duration has passed, even if no frame arrived', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<FeedEvent>('-', { f });
      const expected = '              100ms (T|)';
      const subscribed = '            ^ 99ms !';
      expectObservable(letters(source, { duration: 100, count: 1 })).toBe(expected);
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('reports the failure that stops the feed as an ending', () => {
    marbles(({ cold, expectObservable }) => {
      expectObservable(letters(cold<FeedEvent>('-f-#', { f }))).toBe('-f-(F|)');
      expectObservable(letters(cold<FeedEvent>('-f-#', { f }), { count: 2 })).toBe('-f-(F|)');
    });
  });
});

describe('the endings of a command', () => {
  it('report that the reader of stdout has exited, at once or later', async () => {
    const context = fakeContext();
    const later = firstValueFrom(endings$(context));
    context.stdout.break('EPIPE');
    const closed = { kind: 'output-closed' };
    expect([await later, await firstValueFrom(endings$(context))]).toStrictEqual([closed, closed]);
  });

  const rows: readonly (readonly [ending: Ending, bounds: Bounds, hasOpened: boolean, code: number])[] = [
    [{ kind: 'count-reached' }, { count: 1 }, true, 0],
    [{ kind: 'output-closed' }, { count: 5 }, true, 0],
    [{ kind: 'time-up' }, { duration: 1 }, true, 0],
    [{ kind: 'time-up' }, { duration: 1 }, false, 6],
    [{ kind: 'time-up' }, { duration: 1, count: 1 }, true, 6],
    [{ kind: 'interrupted' }, {}, true, 0],
    [{ kind: 'interrupted' }, {}, false, 0],
    [{ kind: 'interrupted' }, { count: 5 }, true, 130],
    [{ kind: 'interrupted' }, { duration: 5 }, true, 130],
  ];
  it.each(rows)('%j with %j and a connection (%s) has the exit code %d', (how, bounds, hasOpened, code) => {
    expect(finish(how, bounds, hasOpened)).toBe(code);
  });
});

const statusOf = (...events: readonly CliEvent[]): Status => events.reduce(statusAfter, statusAt('market', start));
const tick = (ms: number): CliEvent => ({ type: 'tick', at: start + ms });

describe('the status of a feed', () => {
  it('has no rate at the start, then a current one over 3 s and an average over the whole time', () => {
    expect([currentRate(statusOf()), averageRate(statusOf())]).toEqual(Array(2).fill({ frames: 0, bytes: 0 }));
    const seconds = Array.from({ length: 10 }, (_, s) => [
      frameAt(s * 1_000 + 1, s < 7 ? 'slow' : 'x'.repeat(40)),
      tick(s * 1_000 + 500),
      tick(s * 1_000 + 1_000),
    ]);
    const status = statusOf(...seconds.flat());
    expect(currentRate(status)).toStrictEqual({ frames: 1, bytes: 40 });
    expect(averageRate(status)).toStrictEqual({ frames: 1, bytes: (7 * 4 + 3 * 40) / 10 });
    expect(perTick(status, 'bytes').slice(-4)).toStrictEqual([40, 0, 40, 0]);
    expect(perTick(statusOf(...Array.from({ length: 100 }, (_, n) => tick(n * 500))), 'frames')).toHaveLength(40);
  });
});
