import { jest } from '@jest/globals';

/**
 * Replaces timers and clocks by fake ones until it is disposed. Sockets and turns of the event loop stay real, so a test can combine both.
 */
export const fakeTimers = (): Disposable => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'clearImmediate', 'queueMicrotask', 'hrtime'] });
  return { [Symbol.dispose]: () => void jest.useRealTimers() };
};
