import { describe, expect, it } from '@jest/globals';
import { applyBatch, applyWelcome } from '../../../src/browser/tabs/apply-message.js';
import type { Received } from '../../../src/protocol/event-line.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { formatEventId } from '../../../src/protocol/event-id.js';
import { disconnected, opened, reconnecting } from '../../operators/stream.js';
import { frame, range } from '../../relay/support.js';

/** The id after `seq` events, as a relay writes it: first `opened`, then frames. */
const id = (seq: number, epoch = 'run_-1') => formatEventId(epoch, { seq, frames: Math.max(0, seq - 1), at: seq * 10 });

const watermark = (at: number): RelayedEvent => ({ type: 'watermark', at });
const frames = (from: number, to: number) => range(from, to).map((n) => frame(n));

/** The batch of a leader from one id to another. */
const batch = (from: string | undefined, to: string | undefined, ...events: RelayedEvent[]) =>
  ({ type: 'batch', term: 1, shiftMs: 1_000, from, to, events }) as const;

const inShort = (events: readonly Received[]) =>
  events.map((event) => (event.type === 'frame' ? event.text() : event.type));

describe('applyBatch', () => {
  it('returns all events if this tab and the leader have reached the same id', () => {
    for (const [own, from] of [
      [id(5), id(5)],
      [undefined, undefined],
    ] as const) {
      const { events, id: reached } = applyBatch(own, batch(from, id(8), ...frames(6, 8), watermark(9)));
      expect([inShort(events), reached]).toEqual([['6', '7', '8', 'watermark'], id(8)]);
    }
  });

  it('returns all events if the same position has another time', () => {
    const next = batch(id(5).replace('.50', '.51'), id(8), ...frames(6, 8));
    expect(inShort(applyBatch(id(5), next).events)).toEqual(['6', '7', '8']);
  });

  it('returns the new events if this tab has reached a later id than the new leader', () => {
    const next = batch(id(5), id(8), ...frames(6, 8), watermark(9));
    expect(inShort(applyBatch(id(6), next).events)).toEqual(['7', '8', 'watermark']);
    expect(inShort(applyBatch(id(7), next).events)).toEqual(['8', 'watermark']);
    expect(applyBatch(id(7), next).id).toBe(id(8));
    for (const own of [id(8), id(9)]) expect(applyBatch(own, next)).toEqual({ events: [], id: own });
  });

  it('returns the events of the connection of the leader at any id', () => {
    const next = batch(id(5), id(5), disconnected(9), reconnecting(9, 5));
    expect(applyBatch(id(9), next)).toEqual({ events: next.events, id: id(9) });
  });

  it('returns a gap of the relay, and the events after it', () => {
    const gap = { type: 'gap', from: 1, to: 2, durationMs: 1, failure: expect.anything() as never } as const;
    const next = batch(id(5), id(100), opened(9), gap);
    expect(applyBatch(id(7), next)).toEqual({ events: next.events, id: id(100) });
  });

  describe('with the ids of a cluster', () => {
    const at = (generation: number, seq: number, frames = seq) =>
      formatEventId(`c5-${generation}-0123456789ab`, { seq, frames, at: 10 });
    const gap = { type: 'gap', from: 1, to: 2, durationMs: 1, failure: expect.anything() as never } as const;
    // An owner counts `opened` as an event, but a change of the owner adds another `opened` and a gap, which it does not count.
    const change = batch(at(1, 9), at(2, 3, 2), opened(9), gap, ...frames(10, 11), watermark(12));

    it('returns the events after the frames that this tab has, also in a message with a change of the owner', () => {
      expect(inShort(applyBatch(at(1, 9), change).events)).toEqual(['opened', 'gap', '10', '11', 'watermark']);
      expect(inShort(applyBatch(at(2, 2, 1), change).events)).toEqual(['11', 'watermark']);
      expect(applyBatch(at(2, 3, 2), change)).toMatchObject({ id: at(2, 3, 2) });
      expect(inShort(applyBatch(at(2, 3, 2), change).events)).toEqual([]);
    });

    it('returns no events of an earlier generation', () => {
      const own = at(3, 1, 0);
      expect(applyBatch(own, change)).toEqual({ events: [], id: own });
      const other = formatEventId('c6-1-0123456789ab', { seq: 1, frames: 1, at: 10 });
      expect(applyBatch(other, change)).toEqual({ events: [], id: other });
    });

    it('adds a gap if the leader is in a later generation', () => {
      const { events, id: reached } = applyBatch(at(1, 9), batch(at(2, 1, 0), at(2, 2, 1), ...frames(10, 10)));
      expect([inShort(events), reached]).toEqual([['gap', '10'], at(2, 2, 1)]);
    });
  });

  it('adds a gap if this tab has reached an earlier id than the leader', () => {
    const { events, id: reached } = applyBatch(id(5), batch(id(8), id(9), ...frames(9, 9)));
    expect([inShort(events), reached]).toEqual([['gap', '9'], id(9)]);
    expect(events[0]).toMatchObject({ from: 1_050, to: 1_080, missed: 3, failure: { code: 'relay-behind' } });
  });

  it('adds a gap without a number if the id is of another log', () => {
    for (const own of [id(500, 'other'), 'no-id']) {
      const { events } = applyBatch(own, batch(id(8), id(9), ...frames(9, 9)));
      expect(inShort(events)).toEqual(['gap', '9']);
      expect(events[0]).not.toHaveProperty('missed');
    }
  });

  it('returns all events of a batch that ends in another log', () => {
    const next = batch(id(5), id(3, 'other'), ...frames(1, 3));
    expect(applyBatch(id(7), next)).toEqual({ events: next.events, id: id(3, 'other') });
  });
});

describe('applyWelcome', () => {
  const welcome = { type: 'welcome', term: 1, tab: 'a', shiftMs: 1_000, watermark: undefined } as const;
  const snapshot = [opened(5, 3)];
  const since = (at: number) => ({ ...opened(at, 3) });

  it('returns the state of the feed, with the time of now or of the watermark', () => {
    expect(applyWelcome(undefined, { ...welcome, id: id(5), snapshot }, 70)).toEqual({
      events: [since(70)],
      id: id(5),
    });
    const mark = { type: 'watermark', at: 60 } as const;
    const late = applyWelcome(undefined, { ...welcome, id: id(5), snapshot, watermark: mark }, 70);
    expect(late.events).toEqual([since(60), mark]);
  });

  it('adds a gap after `opened` if the tab resumes at an earlier id', () => {
    const { events, id: reached } = applyWelcome(id(5), { ...welcome, id: id(8), snapshot }, 70);
    expect([inShort(events), reached]).toEqual([['opened', 'gap'], id(8)]);
    expect(events[1]).toMatchObject({ from: 1_050, to: 1_080, missed: 3, failure: { code: 'relay-behind' } });
  });

  it('adds no gap if nothing is missing', () => {
    for (const own of [id(8), id(9)])
      expect(applyWelcome(own, { ...welcome, id: id(8), snapshot }, 70)).toEqual({ events: [since(70)], id: own });
  });

  it('keeps the id of the tab if the leader has none yet', () => {
    expect(applyWelcome(id(5), { ...welcome, id: undefined, snapshot: [] }, 70)).toEqual({ events: [], id: id(5) });
  });
});
