import { jest } from '@jest/globals';

/**
 * Fakes timers and clocks until it's disposed of. Sockets and the event loop stay real, so a test can combine both.
 */
export const fakeTimers = (): Disposable => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'clearImmediate', 'queueMicrotask', 'hrtime'] });
  return { [Symbol.dispose]: () => void jest.useRealTimers() };
};
