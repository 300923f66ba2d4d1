import { describe, expect, it } from '@jest/globals';
import { defer } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { MAX_IDLE_MS, nextWaitMs, renewIdle } from '../../src/transport/renew-idle.js';

describe('nextWaitMs', () => {
  it.each([
    ['after the first connection', 0, 0, 1_000],
    ['twice as long', 1_000, 0, 2_000],
    ['twice as long', 2_000, 9_999, 4_000],
    ['at most a minute', 32_000, 5, 60_000],
    ['at most a minute', 60_000, 5, 60_000],
    ['one second again after an accepted connection', 32_000, 10_000, 1_000],
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
      let opened = 0;
      const next$ = defer(() => connections[(opened += 1) - 1] as (typeof connections)[number]);
      expectObservable(next$.pipe(renewIdle({ scheduler, random: () => random })), unsubscribed).toBe('');
      connections.forEach((connection, n) => {
        expectSubscriptions(connection.subscriptions).toBe(subscriptions[n] ?? []);
      });
    });
  };

  it('opens another connection, with growing waits while the connections do not last', () => {
    marbles(['|', '5s |', '|', '-'], 1, ['(^!)', '1s ^ 4999ms !', '1s 5s 2s (^!)', '1s 5s 2s 4s ^ 999ms !'], '13s !');
  });

  it('starts with a short wait again after an accepted connection', () => {
    marbles(['|', '|', '10s |', '-'], 1, ['(^!)', '1s (^!)', '3s ^ 9999ms !', '14s ^ 999ms !'], '15s !');
  });

  it('waits at least half as long, by chance', () => {
    marbles(['|', '-'], 0, ['(^!)', '500ms ^ 99ms !'], '600ms !');
  });

  it('waits longer for a larger random number', () => {
    marbles(['|', '-'], 0.5, ['(^!)', '750ms ^ 99ms !'], '850ms !');
  });

  it('replaces a connection that is too old', () => {
    marbles(
      ['-', '-'],
      1,
      [`^ ${MAX_IDLE_MS - 1}ms !`, `${MAX_IDLE_MS + 1_000}ms ^ 999ms !`],
      `${MAX_IDLE_MS + 2_000}ms !`,
    );
  });

  it('does not wait 0 ms if random returns NaN', () => {
    marbles(['|', '-'], NaN, ['(^!)', '1s ^ 99ms !'], '1100ms !');
  });

  it('opens no other connection after it was unsubscribed', () => {
    marbles(['|', '-'], 1, ['(^!)'], '500ms !');
  });
});
