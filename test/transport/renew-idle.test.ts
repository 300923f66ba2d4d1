import { describe, expect, it } from '@jest/globals';
import { defer } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { MAX_IDLE_MS, nextWaitMs, renewIdle } from '../../src/transport/renew-idle.js';

describe('nextWaitMs', () => {
  it.each([
    ['after the first', 0, 0, 1_000],
    ['twice as long', 1_000, 0, 2_000],
    ['twice as long', 2_000, 9_999, 4_000],
    ['a minute at the most', 32_000, 5, 60_000],
    ['a minute at the most', 60_000, 5, 60_000],
    ['from the beginning once one was let live', 32_000, 10_000, 1_000],
  ])('waits %s: %i ms, lived %i ms', (_, lastMs, livedMs, waitMs) => {
    expect(nextWaitMs(lastMs, livedMs)).toBe(waitMs);
  });
});

describe('renewIdle', () => {
  const marbles = (
    lives: readonly string[],
    random: number,
    subscriptions: readonly string[],
    unsubscribed: string,
  ) => {
    const scheduler = new TestScheduler((actual, expected) => {
      expect(actual).toEqual(expected);
    });
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const connections = lives.map((life) => cold<never>(life));
      let made = 0;
      const next$ = defer(() => connections[(made += 1) - 1] as (typeof connections)[number]);
      expectObservable(next$.pipe(renewIdle({ scheduler, random: () => random })), unsubscribed).toBe('');
      connections.forEach((connection, n) => {
        expectSubscriptions(connection.subscriptions).toBe(subscriptions[n] ?? []);
      });
    });
  };

  it('makes another with growing waits while they do not last', () => {
    marbles(['|', '5s |', '|', '-'], 1, ['(^!)', '1s ^ 4999ms !', '1s 5s 2s (^!)', '1s 5s 2s 4s ^ 999ms !'], '13s !');
  });

  it('waits anew for a short time once one was let live', () => {
    marbles(['|', '|', '10s |', '-'], 1, ['(^!)', '1s (^!)', '3s ^ 9999ms !', '14s ^ 999ms !'], '15s !');
  });

  it('waits half as long at the least, by chance', () => {
    marbles(['|', '-'], 0, ['(^!)', '500ms ^ 99ms !'], '600ms !');
  });

  it('waits for longer, the higher the draw', () => {
    marbles(['|', '-'], 0.5, ['(^!)', '750ms ^ 99ms !'], '850ms !');
  });

  it('lets none grow older than is safe', () => {
    marbles(
      ['-', '-'],
      1,
      [`^ ${MAX_IDLE_MS - 1}ms !`, `${MAX_IDLE_MS + 1_000}ms ^ 999ms !`],
      `${MAX_IDLE_MS + 2_000}ms !`,
    );
  });

  it('waits as well when chance is no number', () => {
    marbles(['|', '-'], NaN, ['(^!)', '1s ^ 99ms !'], '1100ms !');
  });

  it('makes no other once nobody wants it', () => {
    marbles(['|', '-'], 1, ['(^!)'], '500ms !');
  });
});
