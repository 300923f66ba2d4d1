import { describe, expect, it } from '@jest/globals';
import { fromPosted, type TabMessage, toPosted } from '../../../src/browser/tabs/tab-message.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { copyFailure, TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import { disconnected, lost, opened } from '../../operators/stream.js';
import { essence } from '../../relay/support.js';

const posted = <T extends TabMessage>(message: T): T => fromPosted(structuredClone(toPosted(message))) as T;

describe('a message to the other tabs', () => {
  it('restores frames with the class Frame, and copies only their bytes', () => {
    const bytes = new Uint8Array(1_000).fill(7);
    const whole = new Frame<Uint8Array>('raw', bytes, true, 5, 2);
    const part = new Frame<Uint8Array>('market', bytes.subarray(10, 20), false, 6, 3);
    const { events } = posted({ type: 'batch', term: 1, from: 'a', to: 'b', shiftMs: 4, events: [whole, part] });
    const [first, second] = events;
    expect([first, second].every((each) => each instanceof Frame && each.data instanceof Uint8Array)).toBe(true);
    expect([essence(first!), essence(second!)]).toEqual([essence(whole), essence(part)]);
    expect(second!.data.buffer.byteLength).toBe(10);
  });

  it('restores failures as errors with all fields and the previous failure', () => {
    const failure = copyFailure(lost(9, { uptimeMs: 3, closeCode: 1013 }), { previous: lost(4) });
    const batch = posted({
      ...{ type: 'batch', term: 1, from: 'a', to: 'a', shiftMs: 0 },
      events: [{ ...disconnected(9), failure }],
    });
    const welcome = posted({
      ...{ type: 'welcome', term: 1, tab: 't', id: 'a', shiftMs: 0, watermark: undefined },
      snapshot: [{ ...disconnected(9), failure }],
    });
    const ended = posted({ type: 'ended', term: 1, failure });
    const seen = [batch.events[0], welcome.snapshot[0], ended] as { failure: TradeFeedError }[];
    for (const each of seen) {
      expect(each.failure).toBeInstanceOf(TradeFeedError);
      expect(JSON.parse(JSON.stringify(each.failure))).toEqual(JSON.parse(JSON.stringify(failure)));
    }
  });

  it('leaves everything else unchanged: events, values, the end of the feed', () => {
    const value = { type: 'value', at: 5, value: { some: ['thing', null, 1] } } as unknown as RelayedEvent;
    const batch = { type: 'batch', term: 1, from: undefined, to: 'a', shiftMs: 0, events: [opened(5), value] } as const;
    for (const message of [
      batch,
      { type: 'ended', term: 1, failure: undefined },
      { type: 'join', tab: 't' },
      { type: 'ping' },
      { type: 'mark', tab: 't' },
      { type: 'leads', term: 2 },
    ] as const)
      expect(posted(message)).toEqual(message);
  });
});
