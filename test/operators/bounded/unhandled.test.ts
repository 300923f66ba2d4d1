import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { config } from 'rxjs';
import { reportUnhandled } from '../../../src/operators/bounded/unhandled.js';

const mine = new Error('mine');

describe('reportUnhandled', () => {
  const before = config.onUnhandledError;

  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
    config.onUnhandledError = before;
  });

  it('hands the error to RxJS, in a task of its own', () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    reportUnhandled(mine);
    expect(unhandled).not.toHaveBeenCalled();
    jest.runAllTimers();
    expect(unhandled.mock.calls).toEqual([[mine]]);
    expect(unhandled.mock.calls[0]?.[0]).toBe(mine);
  });

  it('hands on whatever was thrown, each once', () => {
    const unhandled = jest.fn();
    config.onUnhandledError = unhandled;
    for (const thrown of [undefined, 'a text', mine]) reportUnhandled(thrown);
    jest.runAllTimers();
    expect(unhandled.mock.calls).toEqual([[undefined], ['a text'], [mine]]);
  });

  it('is a thrown error when nobody takes it, and none for who calls', () => {
    config.onUnhandledError = null;
    expect(() => reportUnhandled(mine)).not.toThrow();
    expect(() => jest.runAllTimers()).toThrow(mine);
  });
});
