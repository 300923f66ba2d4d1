import { afterEach, expect, it, jest } from '@jest/globals';
import { waitFor } from './wait-for.js';

afterEach(() => {
  jest.useRealTimers();
});

it('returns the first truthy value', async () => {
  let n = 0;
  expect(await waitFor(() => ((n += 1) < 150 ? undefined : n))).toBe(150);
});

it('waits for a promise of a value', async () => {
  expect(await waitFor(() => Promise.resolve('ready'))).toBe('ready');
});

it('rejects after the limit, and says what was missing', async () => {
  await expect(waitFor(() => false, { limitMs: 20, what: () => 'an event' })).rejects.toThrow(
    'Waited 20 ms in vain for: an event',
  );
  await expect(waitFor(() => performance.now() < 0, { limitMs: 0 })).rejects.toThrow('performance.now() < 0');
});

it('works with fake timers', async () => {
  jest.useFakeTimers({ now: 0 });
  const started = process.hrtime.bigint();
  await expect(waitFor(() => false, { limitMs: 20 })).rejects.toThrow('in vain');
  expect(started).toBe(process.hrtime.bigint());
});
