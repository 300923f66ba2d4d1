import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EMPTY, Subject } from 'rxjs';
import { waitFor } from './wait-for.js';

afterEach(() => void jest.useRealTimers());

describe('waitFor', () => {
  it('returns what the condition returns, also with fake timers', async () => {
    jest.useFakeTimers();
    let calls = 0;
    expect(await waitFor(() => (calls += 1) > 30 && 'found')).toBe('found');
    expect(await waitFor(() => Promise.resolve('at once'))).toBe('at once');
  });

  it('names what is missing when it gives up', async () => {
    await expect(waitFor(() => false, { limitMs: 20, what: () => 'a frame' })).rejects.toThrow(
      /^Waited 20 ms in vain for: a frame$/,
    );
    await expect(waitFor(() => '', { limitMs: 0 })).rejects.toThrow("in vain for: ()=>''");
  });

  it.each([1, 10, 20])('goes on after its process was stopped for longer than its limit: at check %d', async (nth) => {
    let calls = 0;
    const condition = () => {
      calls += 1;
      if (calls === nth) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      return calls === nth + 5;
    };
    await waitFor(condition, { limitMs: 100 });
    expect(calls).toBe(nth + 5);
  });
});

describe('waitFor with events', () => {
  it('checks after each of them, and does not poll', async () => {
    const values = new Subject<void>();
    let calls = 0;
    const condition = () => {
      setImmediate(() => values.next());
      return (calls += 1) === 100;
    };
    // Pauses alone would give it 20 checks.
    await waitFor(condition, { limitMs: 2_000, on: values });
    expect(calls).toBe(100);
    expect(values.observed).toBe(false);
  });

  it('fails at their end, after a last check', async () => {
    const values = new Subject<void>();
    let isThere = false;
    const found = waitFor(() => isThere, { on: values });
    const missed = waitFor(() => false, { on: values, what: () => 'a line' });
    isThere = true;
    values.complete();
    expect(await found).toBe(true);
    await expect(missed).rejects.toThrow(/^The output ended without: a line$/);
    await expect(waitFor(() => false, { on: EMPTY, what: () => 'a line' })).rejects.toThrow('ended without: a line');
    expect(await waitFor(() => true, { on: EMPTY })).toBe(true);
  });
});
