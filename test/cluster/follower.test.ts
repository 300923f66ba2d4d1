import { describe, expect, it } from '@jest/globals';
import { createFollower, type Follower } from '../../src/cluster/follower/follower.js';
import type { FeedMessage, MessageHead } from '../../src/cluster/messages/feed-message.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';
import { createTradeFeedError, type FeedEvent, Frame, type OwnerChanged } from '../../src/index.js';

const follower = (): {
  readonly follower: Follower;
  readonly words: () => readonly string[];
  readonly events: readonly (FeedEvent | OwnerChanged)[];
} => {
  const events: (FeedEvent | OwnerChanged)[] = [];
  return { follower: createFollower('market', (event) => events.push(event)), events, words: () => events.map(word) };
};

const word = (event: FeedEvent | OwnerChanged): string => {
  if (event.type === 'frame') return `${event.text()}/${event.connection}`;
  if (event.type === 'gap') return `gap ${event.failure.code} ${event.missed ?? '?'}`;
  if (event.type === 'owner-changed') return `owner ${event.owner} ${event.generation}`;
  if (event.type === 'opened') return `opened ${event.connection}`;
  return event.type;
};

const head = (gen: number, sequence: number, fields: Partial<MessageHead> = {}): MessageHead => ({
  ...{ epoch: 1, gen, owner: `r${gen}`, phase: 'open', revision: 1, sequence, frames: sequence, at: 1_000 + sequence },
  ...fields,
});
const batch = (gen: number, sequence: number, ...texts: readonly string[]): FeedMessage => ({
  ...head(gen, sequence),
  kind: 'batch',
  batch: texts.map((text) => new Frame('market', Buffer.from(text), false, 1_000, 0)),
});
const beat = (gen: number, sequence: number, fields: Partial<MessageHead> = {}): FeedMessage => ({
  ...head(gen, sequence, fields),
  kind: 'beat',
});
const end = (gen: number, sequence: number): FeedMessage => ({ ...head(gen, sequence), kind: 'end' });

describe('a follower', () => {
  it('begins with the first message that arrives, wherever it is in its generation', () => {
    const { follower: one, words } = follower();
    one.receive(batch(3, 10, 'a', 'b'), 0);
    one.receive(batch(3, 12, 'c'), 1);
    expect(words()).toEqual(['opened 1', 'a/1', 'b/1', 'c/1']);
  });

  it('emits a frame once, also if its message arrives twice', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(1, 1, 'b'), 0);
    expect(words()).toEqual(['opened 1', 'a/1', 'b/1']);
  });

  it('has the generation of its newest message, also of one that waits', () => {
    const { follower: one } = follower();
    expect(one.generation).toBe(0);
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(3, 0, 'b'), 0);
    expect(one.generation).toBe(3);
    one.tick(100);
    expect(one.generation).toBe(3);
  });

  it('reports the exact number of frames that did not arrive', () => {
    const { follower: one, words, events } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(1, 8, 'b'), 0);
    expect(words()).toEqual(['opened 1', 'a/1', 'gap cluster-behind 7', 'b/1']);
    expect(events[2]).toMatchObject({ from: 1_000, to: 1_008, durationMs: 8 });
  });

  it('detects the loss on a quiet feed with the next beat', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(beat(1, 3), 0);
    one.receive(batch(1, 3, 'd'), 0);
    expect(words()).toEqual(['opened 1', 'a/1', 'gap cluster-behind 2', 'watermark', 'd/1']);
  });

  it('counts only frames, not events, as missed', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive({ ...beat(1, 4), frames: 2 }, 0);
    expect(words()).toEqual(['opened 1', 'a/1', 'gap cluster-behind 1', 'watermark']);
  });

  it('drops messages of a lower generation', () => {
    const { follower: one, words } = follower();
    one.receive(batch(2, 0, 'a'), 0);
    one.receive(batch(1, 5, 'old'), 0);
    one.receive(end(1, 6), 0);
    expect(words()).toEqual(['opened 1', 'a/1']);
  });

  it('drops messages of another owner with the same generation', () => {
    const { follower: one, words } = follower();
    one.receive(batch(2, 0, 'a'), 0);
    one.receive({ ...batch(2, 1, 'other'), owner: 'x' }, 0);
    expect(words()).toEqual(['opened 1', 'a/1']);
  });

  it('holds a new generation until the end of the old one', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(2, 0, 'c', 'd'), 10);
    one.receive(batch(1, 1, 'b'), 20);
    expect(words()).toEqual(['opened 1', 'a/1', 'b/1']);
    one.receive(end(1, 2), 30);
    expect(words().slice(3)).toEqual(['owner r2 2', 'opened 2', 'gap owner-changed ?', 'c/2', 'd/2']);
    expect(one.nextTick).toBeUndefined();
  });

  it('reports frames that are missing before the end of the old generation', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(2, 0, 'c'), 10);
    one.receive(end(1, 4), 30);
    expect(words().slice(2)).toEqual(['gap cluster-behind 3', 'owner r2 2', 'opened 2', 'gap owner-changed ?', 'c/2']);
  });

  it('emits the frames of one owner only, if a store that has lost data used the number of a generation twice', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(2, 0, 'b'), 1);
    one.receive({ ...batch(2, 1, 'x'), owner: 'other' }, 2);
    one.receive(batch(2, 1, 'c'), 3);
    one.tick(101);
    expect(words().filter((each) => /^[a-z]\//.test(each))).toEqual(['a/1', 'b/2', 'c/2']);
  });

  it('holds a new generation for 100 ms at most', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(2, 0, 'c'), 10);
    expect(one.nextTick).toBe(110);
    one.tick(109);
    expect(words()).toEqual(['opened 1', 'a/1']);
    one.tick(110);
    one.receive(batch(1, 1, 'late'), 111);
    expect(words().slice(2)).toEqual(['owner r2 2', 'opened 2', 'gap owner-changed ?', 'c/2']);
  });

  it('does not hold a generation when the old owner has been silent for longer than the time between two beats', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(beat(1, 1), 250);
    one.receive(batch(2, 0, 'c'), 651);
    expect(words().slice(3)).toEqual(['owner r2 2', 'opened 2', 'gap owner-changed ?', 'c/2']);
    one.receive(batch(3, 0, 'd'), 700);
    expect(one.nextTick).toBe(800);
  });

  it('does not hold a generation after the end of the old one', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(end(1, 1), 0);
    one.receive(batch(2, 0, 'c'), 10);
    expect(words().slice(2)).toEqual(['owner r2 2', 'opened 2', 'gap owner-changed ?', 'c/2']);
  });

  it('stays with the old owner until the new one has a connection', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(beat(2, 0, { phase: 'opening' }), 10);
    expect(one.nextTick).toBeUndefined();
    one.receive(batch(1, 1, 'b'), 500);
    expect(words()).toEqual(['opened 1', 'a/1', 'b/1']);
  });

  it('emits both generations if a third one follows during the hold', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(2, 0, 'b'), 10);
    one.receive(batch(3, 0, 'c'), 20);
    one.tick(120);
    expect(words().slice(2)).toEqual([
      ...['owner r2 2', 'opened 2', 'gap owner-changed ?', 'b/2'],
      ...['owner r3 3', 'opened 3', 'gap owner-changed ?', 'c/3'],
    ]);
  });

  it('drops a message of a generation between the current one and the one that it holds', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.receive(batch(3, 0, 'c'), 10);
    one.receive(batch(2, 0, 'b'), 20);
    one.tick(110);
    expect(words().slice(2)).toEqual(['owner r3 3', 'opened 2', 'gap owner-changed ?', 'c/2']);
  });

  it('does not hold more than 10,000 messages, or 64 MiB of frames', () => {
    for (const [size, count] of [
      [1, 10_001],
      [1024 * 1024, 65],
    ] as const) {
      const { follower: one, events } = follower();
      const data = Buffer.alloc(size);
      one.receive(batch(1, 0, 'a'), 0);
      for (let n = 0; n < count; n += 1) {
        expect(one.nextTick).toBe(n === 0 ? undefined : 110);
        one.receive({ ...head(2, n), kind: 'batch', batch: [new Frame('market', data, true, 1, 0)] }, 10);
      }
      expect(one.nextTick).toBeUndefined();
      expect(events.filter(({ type }) => type === 'frame')).toHaveLength(count + 1);
    }
  });

  it('copies held frames, so that they do not retain their read buffer', () => {
    const { follower: one } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    const message = batch(2, 0, 'b') as Extract<FeedMessage, { readonly kind: 'batch' }>;
    const { data } = message.batch[0]!;
    one.receive(message, 10);
    expect(message.batch[0]!.data).not.toBe(data);
  });

  it('holds frames of its own connection beyond the next read', () => {
    const { follower: one, words } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    const memory = Buffer.from('onetwo');
    const frame = new ReceivedFrame('market', memory, 0, 3, false, true, 5, 1, true);
    one.receive({ ...head(2, 0), kind: 'batch', batch: [frame] }, 10);
    memory.fill('x');
    one.tick(110);
    expect(words().at(-1)).toBe('one/2');
  });

  it('reports that the engine is away, and then a gap with the number of missed frames', () => {
    const { follower: one, words, events } = follower();
    one.receive(batch(1, 0, 'a'), 0);
    one.away(2_000);
    one.away(2_001);
    one.receive(batch(1, 5, 'b'), 100);
    expect(words().slice(2)).toEqual(['disconnected', 'opened 2', 'gap cluster-away 4', 'b/2']);
    expect(events[2]).toMatchObject({ at: 2_000, failure: { code: 'cluster-away', endedAt: 1_000 } });
  });

  it('has no outage before the first message', () => {
    const { follower: one, words } = follower();
    one.away(2_000);
    expect(words()).toEqual([]);
  });

  it('emits the events of the owner in their place, without the first opened', () => {
    const { follower: one, words } = follower();
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
    const event = (
      sequence: number,
      frames: number,
      each: Extract<FeedMessage, { readonly kind: 'event' }>['event'],
    ): FeedMessage => ({
      ...head(1, sequence, { frames }),
      kind: 'event',
      event: each,
    });
    one.receive(event(0, 0, { type: 'opened', at: 1, feed: 'market', connection: 1 }), 0);
    one.receive({ ...batch(1, 1, 'a'), frames: 0 }, 0);
    one.receive(event(2, 1, { type: 'disconnected', at: 2, failure }), 0);
    one.receive(event(3, 1, { type: 'opened', at: 3, feed: 'market', connection: 2 }), 0);
    one.receive(event(4, 1, { type: 'gap', from: 2, to: 3, durationMs: 1, failure }), 0);
    one.receive({ ...batch(1, 5, 'b'), frames: 1 }, 0);
    expect(words()).toEqual(['opened 1', 'a/1', 'disconnected', 'opened 2', 'gap connection-lost ?', 'b/2']);
  });
});
