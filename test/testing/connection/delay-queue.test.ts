import { describe, expect, it } from '@jest/globals';
import { createDelayQueue } from '../../../src/testing/connection/delay-queue.js';
import { manualClock } from '../service-under-test.js';

const setup = (delayMs = 500) => {
  const clock = manualClock();
  const released: string[] = [];
  const queue = createDelayQueue(delayMs, clock.scheduler, (frame) => {
    released.push(`${frame.toString()}@${clock.scheduler.now()}`);
  });
  return { clock, released, queue, push: (name: string) => queue.push(Buffer.from(name)) };
};

describe('the delay of the Free plan (contract 6, rule 3)', () => {
  it('delays each frame by the fixed time, in order', () => {
    const { clock, released, push } = setup();
    push('a');
    clock.advance(100);
    push('b');
    push('c');
    clock.advance(399);
    expect(released).toEqual([]);
    clock.advance(1);
    expect(released).toEqual(['a@500']);
    clock.advance(100);
    expect(released).toEqual(['a@500', 'b@600', 'c@600']);
    clock.advance(1_000);
    push('d');
    clock.advance(500);
    expect(released.slice(3)).toEqual(['d@2100']);
  });

  it('never releases a frame early by the fraction that a timer cuts off', () => {
    const { clock, released, push } = setup();
    push('a');
    clock.scheduler.frame = 0.7;
    push('b');
    clock.scheduler.maxFrames = 2_000;
    clock.scheduler.flush();
    expect(released).toEqual(['a@500', 'b@501']);
  });

  it('has one timer for any number of waiting frames', () => {
    const { clock, push } = setup();
    for (let i = 0; i < 100; i += 1) {
      push(String(i));
      clock.advance(1);
    }
    expect(clock.scheduler.actions.length).toBe(1);
  });

  it('keeps the order of thousands of frames', () => {
    const { clock, released, push } = setup(50);
    for (let i = 0; i < 5_000; i += 1) {
      push(String(i));
      if (i % 7 === 0) clock.advance(3);
    }
    clock.advance(50);
    expect(released.map((each) => Number(each.split('@')[0]))).toEqual(Array.from({ length: 5_000 }, (_, i) => i));
  });

  it('releases all frames at once on flush, and leaves no active timer', () => {
    const { clock, released, queue, push } = setup();
    push('a');
    clock.advance(10);
    push('b');
    queue.flush();
    expect(released).toEqual(['a@10', 'b@10']);
    clock.advance(1_000);
    push('c');
    clock.advance(500);
    expect(released.slice(2)).toEqual(['c@1510']);
  });

  it('drops all frames on clear, and leaves no active timer', () => {
    const { clock, released, queue, push } = setup();
    push('a');
    queue.clear();
    clock.advance(1_000);
    expect(released).toEqual([]);
  });

  it('can be cleared while it releases a frame', () => {
    const clock = manualClock();
    const released: string[] = [];
    const queue = createDelayQueue(10, clock.scheduler, (frame) => {
      released.push(frame.toString());
      queue.clear();
    });
    queue.push(Buffer.from('a'));
    queue.push(Buffer.from('b'));
    clock.advance(100);
    expect(released).toEqual(['a']);
  });
});
