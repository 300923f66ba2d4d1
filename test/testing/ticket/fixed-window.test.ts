import { describe, expect, it } from '@jest/globals';
import { countInWindow, type FixedWindow } from '../../../src/testing/ticket/fixed-window.js';

const limits = { windowMs: 60_000, ticketsPerWindow: 2 };

describe('the fixed window of ticket requests (contract 7.1, 8)', () => {
  it('begins with the first request and counts up to the limit', () => {
    const first = countInWindow(undefined, 1_000, limits);
    expect(first).toEqual({ window: { startedAt: 1_000, count: 1 } });
    expect(countInWindow(first.window, 2_000, limits)).toEqual({ window: { startedAt: 1_000, count: 2 } });
  });

  const full: FixedWindow = { startedAt: 1_000, count: 2 };
  it.each([
    [1_000, 60],
    [1_001, 60],
    [31_000, 30],
    [60_000, 1],
    [60_999.5, 1],
  ])('is full at %d ms: %d s until the next', (now, retryAfterSeconds) => {
    expect(countInWindow(full, now, limits)).toEqual({ window: full, retryAfterSeconds });
  });

  it('is fixed: a new window begins when it is over, not when requests are old', () => {
    expect(countInWindow(full, 61_000, limits)).toEqual({ window: { startedAt: 61_000, count: 1 } });
  });

  it('has room after every `Retry-After`', () => {
    for (let now = 1_000; now < 61_000; now += 333.3) {
      const { retryAfterSeconds = 0 } = countInWindow(full, now, limits);
      expect(countInWindow(full, now + retryAfterSeconds * 1_000, limits).retryAfterSeconds).toBeUndefined();
    }
  });

  it('grants nothing with a limit of 0', () => {
    const none = { windowMs: 500, ticketsPerWindow: 0 };
    expect(countInWindow(undefined, 0, none).retryAfterSeconds).toBe(1);
  });
});
