import { describe, expect, it } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { publishEvents } from '../../src/diagnostics/lifecycle-channels.js';
import { issued, opened, reconnecting, requested } from '../operators/stream.js';

const origin = { feed: 'market', baseUrl: 'https://feed.example.com', where: 'test' } as const;

describe('publishEvents', () => {
  it('publishes a change of the owner on the channel `owner`, with the origin', () => {
    const messages: unknown[] = [];
    const listener = (message: unknown) => void messages.push(message);
    subscribe('rx-trade-feed:owner', listener);
    const event = { type: 'owner-changed', at: 7, owner: 'replica-2', generation: 3 } as const;
    publishEvents(origin)(event);
    unsubscribe('rx-trade-feed:owner', listener);
    publishEvents(origin)(event);
    expect(messages).toEqual([{ origin, event }]);
  });

  it('has no channel for the steps of an attempt', () => {
    const messages: unknown[] = [];
    const listener = (message: unknown) => void messages.push(message);
    const names = ['opened', 'ticket-requested', 'ticket-issued', 'reconnecting'].map(
      (name) => `rx-trade-feed:${name}`,
    );
    for (const name of names) subscribe(name, listener);
    [requested(1), issued(2), opened(3), reconnecting(4, 5)].forEach(publishEvents(origin));
    for (const name of names) unsubscribe(name, listener);
    expect(messages).toEqual([{ origin, event: opened(3) }]);
  });
});
