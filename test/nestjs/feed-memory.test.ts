import { describe, expect, it } from '@jest/globals';
import { Subject } from 'rxjs';
import { FeedMemory } from '../../src/nestjs/feed-memory.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { disconnected, frameOf, opened, watermark } from '../operators/stream.js';

const memoryAfter = (...events: readonly FeedEvent[]) => {
  const memory = new FeedMemory();
  const source = new Subject<FeedEvent>();
  const subscription = source.pipe(memory.track()).subscribe();
  for (const event of events) source.next(event);
  return { memory, subscription };
};

describe('FeedMemory', () => {
  it('returns `opened` with the current time for a feed that is open', () => {
    const before = Date.now();
    const [event, ...others] = memoryAfter(opened(5, 2), frameOf('a', 6)).memory.snapshot;
    expect([event, others]).toEqual([{ ...opened(5, 2), at: expect.any(Number) }, []]);
    expect((event as { readonly at: number }).at).toBeGreaterThanOrEqual(before);
  });

  it('returns `opened` with the time of the watermark, because older frames follow it', () => {
    const { memory } = memoryAfter(opened(5), watermark(7), frameOf('a', 8), watermark(9));
    expect(memory.snapshot).toEqual([opened(9), watermark(9)]);
  });

  it('returns the events of an outage unchanged, and nothing without a subscriber', () => {
    const end = disconnected(8);
    const { memory, subscription } = memoryAfter(opened(5), watermark(7), end, watermark(9));
    expect(memory.snapshot).toEqual([end, watermark(9)]);
    subscription.unsubscribe();
    expect(memory.snapshot).toEqual([]);
  });
});
