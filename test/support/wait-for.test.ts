import { expect, it } from '@jest/globals';
import { EMPTY, Subject } from 'rxjs';
import { waitFor } from './wait-for.js';

it('waitFor names what is missing when it gives up, and when the output ends after a last check', async () => {
  await expect(waitFor(() => false, { limitMs: 20, what: () => 'a frame' })).rejects.toThrow(
    /^Waited 20 ms in vain for: a frame$/,
  );
  await expect(waitFor(() => '', { limitMs: 0 })).rejects.toThrow("in vain for: ()=>''");
  const missed = waitFor(() => false, { on: EMPTY, what: () => 'a line' });
  await expect(missed).rejects.toThrow(/^The output ended without: a line$/);
  expect(await waitFor(() => 'found', { on: EMPTY })).toBe('found');
});

it('waitFor with events checks after each of them, and does not poll', async () => {
  const values = new Subject<void>();
  let calls = 0;
  const condition = () => {
    setImmediate(() => values.next());
    return (calls += 1) === 100;
  };
  // Pauses alone would give it 20 checks.
  await waitFor(condition, { limitMs: 2_000, on: values });
  expect([calls, values.observed]).toEqual([100, false]);
});

it.each([1, 20])(
  'waitFor goes on after its process was stopped for longer than its limit: at check %d',
  async (nth) => {
    let calls = 0;
    const condition = () => {
      calls += 1;
      if (calls === nth) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      return calls === nth + 5;
    };
    await waitFor(condition, { limitMs: 100 });
    expect(calls).toBe(nth + 5);
  },
);
