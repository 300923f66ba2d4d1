import { describe, expect, it } from '@jest/globals';
import { takeBatch, takeWelcome } from '../../../src/browser/tabs/place.js';
import type { Received } from '../../../src/protocol/event-line.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { eventId } from '../../../src/relay/event-id.js';
import { disconnected, opened, reconnecting } from '../../operators/stream.js';
import { frame, range } from '../../relay/support.js';

/** The id of the place after so many events, as a relay writes it: the first is an `opened`, all others are frames. */
const id = (seq: number, run = 'run_-1') => eventId(run, { seq, frames: Math.max(0, seq - 1), at: seq * 10 });

const watermark = (at: number): RelayedEvent => ({ type: 'watermark', at });
const frames = (from: number, to: number) => range(from, to).map((n) => frame(n));

/** The batch of a leader that goes from one place to another. */
const batch = (from: string | undefined, to: string | undefined, ...events: RelayedEvent[]) =>
  ({ type: 'batch', term: 1, shiftMs: 1_000, from, to, events }) as const;

const inShort = (events: readonly Received[]) =>
  events.map((event) => (event.type === 'frame' ? event.text() : event.type));

describe('takeBatch', () => {
  it('takes all of it where this tab and the leader are at the same place', () => {
    for (const [own, from] of [
      [id(5), id(5)],
      [undefined, undefined],
    ] as const) {
      const { events, id: reached } = takeBatch(own, batch(from, id(8), ...frames(6, 8), watermark(9)));
      expect([inShort(events), reached]).toEqual([['6', '7', '8', 'watermark'], id(8)]);
    }
  });

  it('takes all of it where the same place has another time', () => {
    const next = batch(id(5).replace('.50', '.51'), id(8), ...frames(6, 8));
    expect(inShort(takeBatch(id(5), next).events)).toEqual(['6', '7', '8']);
  });

  it('takes the part that is new where this tab was further than the new leader', () => {
    const next = batch(id(5), id(8), ...frames(6, 8), watermark(9));
    expect(inShort(takeBatch(id(6), next).events)).toEqual(['7', '8', 'watermark']);
    expect(inShort(takeBatch(id(7), next).events)).toEqual(['8', 'watermark']);
    expect(takeBatch(id(7), next).id).toBe(id(8));
    for (const own of [id(8), id(9)]) expect(takeBatch(own, next)).toEqual({ events: [], id: own });
  });

  it('takes what the leader says of its connection, wherever this tab is', () => {
    const next = batch(id(5), id(5), disconnected(9), reconnecting(9, 5));
    expect(takeBatch(id(9), next)).toEqual({ events: next.events, id: id(9) });
  });

  it('takes a gap of the relay, and what is left after it', () => {
    const gap = { type: 'gap', from: 1, to: 2, durationMs: 1, failure: expect.anything() as never } as const;
    const next = batch(id(5), id(100), opened(9), gap);
    expect(takeBatch(id(7), next)).toEqual({ events: next.events, id: id(100) });
  });

  it('puts a gap before it where this tab was not as far as the leader', () => {
    const { events, id: reached } = takeBatch(id(5), batch(id(8), id(9), ...frames(9, 9)));
    expect([inShort(events), reached]).toEqual([['gap', '9'], id(9)]);
    expect(events[0]).toMatchObject({ from: 1_050, to: 1_080, missed: 3, failure: { code: 'relay-behind' } });
  });

  it('puts a gap without a number where the place is of another run of the relay', () => {
    for (const own of [id(500, 'other'), 'no-place']) {
      const { events } = takeBatch(own, batch(id(8), id(9), ...frames(9, 9)));
      expect(inShort(events)).toEqual(['gap', '9']);
      expect(events[0]).not.toHaveProperty('missed');
    }
  });

  it('takes all of a batch that leads to another run of the relay', () => {
    const next = batch(id(5), id(3, 'other'), ...frames(1, 3));
    expect(takeBatch(id(7), next)).toEqual({ events: next.events, id: id(3, 'other') });
  });
});

describe('takeWelcome', () => {
  const welcome = { type: 'welcome', term: 1, tab: 'a', shiftMs: 1_000, watermark: undefined } as const;
  const present = [opened(5, 3)];
  const since = (at: number) => ({ ...opened(at, 3) });

  it('gives the state of the feed, as of now or of the watermark', () => {
    expect(takeWelcome(undefined, { ...welcome, id: id(5), present }, 70)).toEqual({ events: [since(70)], id: id(5) });
    const mark = { type: 'watermark', at: 60 } as const;
    const late = takeWelcome(undefined, { ...welcome, id: id(5), present, watermark: mark }, 70);
    expect(late.events).toEqual([since(60), mark]);
  });

  it('gives a gap after the opening where the tab remembers an earlier place', () => {
    const { events, id: reached } = takeWelcome(id(5), { ...welcome, id: id(8), present }, 70);
    expect([inShort(events), reached]).toEqual([['opened', 'gap'], id(8)]);
    expect(events[1]).toMatchObject({ from: 1_050, to: 1_080, missed: 3, failure: { code: 'relay-behind' } });
  });

  it('gives no gap where nothing is missing', () => {
    for (const own of [id(8), id(9)])
      expect(takeWelcome(own, { ...welcome, id: id(8), present }, 70)).toEqual({ events: [since(70)], id: own });
  });

  it('keeps the place of the tab where the leader has none yet', () => {
    expect(takeWelcome(id(5), { ...welcome, id: undefined, present: [] }, 70)).toEqual({ events: [], id: id(5) });
  });
});
