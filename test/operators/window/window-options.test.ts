import { describe, expect, it } from '@jest/globals';
import { asyncScheduler } from 'rxjs';
import { resolveWindow, timeRules, integerMs, windowDefaults } from '../../../src/operators/window/window-options.js';

const resolve = (options: object) => resolveWindow(options, { lengthMs: integerMs }, timeRules);

describe('resolveWindow', () => {
  it('adds the defaults of missing and undefined options', () => {
    const { align, scheduler, maxFrames, contents } = resolve({ lengthMs: 1, align: undefined, maxFrames: undefined });
    expect({ align, scheduler, maxFrames }).toEqual({
      align: 'epoch',
      scheduler: asyncScheduler,
      maxFrames: 1_000_000,
    });
    expect(contents.limit).toBe(1_000_000);
    expect(Object.isFrozen(windowDefaults)).toBe(true);
  });

  it('has no limit for an accumulator', () => {
    expect(resolve({ lengthMs: 1, seed: () => 0, add: () => 1 }).contents.limit).toBe(Infinity);
    expect(resolve({ lengthMs: 1, seed: undefined, add: undefined, maxFrames: 3 }).contents.limit).toBe(3);
  });

  it.each<[unknown, string]>([
    [undefined, '`options` must be an object'],
    [null, '`options` must be an object'],
    [{ lengthMs: undefined }, '`lengthMs` must be a whole number of ms, 1 or more'],
    [{ lengthMs: '1' }, '`lengthMs` must be a whole number of ms, 1 or more'],
    [{ lengthMs: 2 ** 53 }, '`lengthMs` must be a whole number of ms, 1 or more, got 9007199254740992'],
    [{ lengthMs: 1, seed: 1, add: () => 0 }, '`seed` must be a function, got 1'],
  ])('refuses %p', (options, message) => {
    expect(() => resolve(options as object)).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(message) }),
    );
  });
});
