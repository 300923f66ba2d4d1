import { describe, expect, it } from '@jest/globals';
import { Subject } from 'rxjs';
import { FeedMemory } from '../../src/nestjs/feed-memory.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { disconnected, frameOf, opened, watermark } from '../operators/stream.js';

const remembered = (...events: readonly FeedEvent[]) => {
  const memory = new FeedMemory();
  const source = new Subject<FeedEvent>();
  const subscription = source.pipe(memory.track()).subscribe();
  for (const event of events) source.next(event);
  return { memory, subscription };
};

describe('FeedMemory', () => {
  it('says to a subscriber that joins that the feed is open from now on', () => {
    const before = Date.now();
    const [event, ...others] = remembered(opened(5, 2), frameOf('a', 6)).memory.snapshot;
    expect([event, others]).toEqual([{ ...opened(5, 2), at: expect.any(Number) }, []]);
    expect((event as { readonly at: number }).at).toBeGreaterThanOrEqual(before);
  });

  it('says so from its watermark on for a feed that is late: older frames follow', () => {
    const { memory } = remembered(opened(5), watermark(7), frameOf('a', 8), watermark(9));
    expect(memory.snapshot).toEqual([opened(9), watermark(9)]);
  });

  it('gives the events of an outage unchanged, and nothing when the feed was left', () => {
    const end = disconnected(8);
    const { memory, subscription } = remembered(opened(5), watermark(7), end, watermark(9));
    expect(memory.snapshot).toEqual([end, watermark(9)]);
    subscription.unsubscribe();
    expect(memory.snapshot).toEqual([]);
  });
});
