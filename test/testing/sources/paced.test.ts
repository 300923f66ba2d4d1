import { describe, expect, it } from '@jest/globals';
import { VirtualTimeScheduler } from 'rxjs';
import { paced$ } from '../../../src/testing/sources/paced.js';
import { manualClock } from '../service-under-test.js';

const counter = () => {
  let count = 0;
  return () => (count += 1);
};

describe('the pace of a source', () => {
  it('is even at a low rate', () => {
    const { scheduler, advance } = manualClock();
    const at: number[] = [];
    const subscription = paced$(10, counter, scheduler).subscribe(() => at.push(scheduler.now()));
    advance(500);
    subscription.unsubscribe();
    expect(at).toEqual([100, 200, 300, 400, 500]);
  });

  it('comes in bursts at a high rate, at most one per 4 ms', () => {
    const { scheduler, advance } = manualClock();
    const bursts = new Map<number, number>();
    const subscription = paced$(50_000, counter, scheduler).subscribe(() => {
      bursts.set(scheduler.now(), (bursts.get(scheduler.now()) ?? 0) + 1);
    });
    advance(100);
    subscription.unsubscribe();
    expect(bursts.size).toBe(25);
    expect([...new Set(bursts.values())]).toEqual([200]);
  });

  it('catches up on at most a tenth of a second when the process was blocked', () => {
    const scheduler = new VirtualTimeScheduler();
    let heldUpMs = 0;
    const now = () => scheduler.frame + heldUpMs;
    const values: number[] = [];
    const subscription = paced$(1_000, counter, {
      now,
      schedule: scheduler.schedule.bind(scheduler),
    }).subscribe((value) => values.push(value));
    scheduler.maxFrames = 4;
    scheduler.flush();
    expect(values).toHaveLength(4);
    heldUpMs = 5_000;
    scheduler.maxFrames = 8;
    scheduler.flush();
    expect(values).toHaveLength(104);
    scheduler.maxFrames = 12;
    scheduler.flush();
    subscription.unsubscribe();
    // The sequence has no hole: skipped values were never created.
    expect(values).toEqual(Array.from({ length: 108 }, (_, index) => index + 1));
  });

  it('begins again for each subscription', () => {
    const { scheduler, advance } = manualClock();
    const source = paced$(10, counter, scheduler);
    const seen: number[][] = [[], []];
    const one = source.subscribe((value) => seen[0]?.push(value));
    advance(200);
    const two = source.subscribe((value) => seen[1]?.push(value));
    advance(100);
    one.unsubscribe();
    two.unsubscribe();
    expect(seen).toEqual([[1, 2, 3], [1]]);
  });
});
