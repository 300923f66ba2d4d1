import { type Channel, channel } from 'node:diagnostics_channel';
import type { Disconnected, Gap, Opened, OwnerChanged, Stopped } from '../protocol/event.js';
import type { LoggableEvent } from '../protocol/event-record.js';
import type { FeedOrigin } from './feed-origin.js';

/** The message of the channels `rx-trade-feed:opened`, `:disconnected`, `:gap`, `:stopped` and `:owner`. */
export interface FeedEventMessage<Event extends PublishedEvent = PublishedEvent> {
  readonly origin: FeedOrigin;
  readonly event: Event;
}

/** The events that have a channel. */
export type PublishedEvent = Opened | Disconnected | Gap | Stopped | OwnerChanged;

/** Publishes lifecycle events on their channels of `node:diagnostics_channel`. Creates no message for a channel without subscribers. */
export const publishEvents =
  (origin: FeedOrigin) =>
  (event: LoggableEvent): void => {
    const target = (channels as Partial<Record<LoggableEvent['type'], Channel>>)[event.type];
    if (target?.hasSubscribers) target.publish({ origin, event });
  };

const channels: Readonly<Record<PublishedEvent['type'], Channel>> = {
  opened: channel('rx-trade-feed:opened'),
  disconnected: channel('rx-trade-feed:disconnected'),
  gap: channel('rx-trade-feed:gap'),
  stopped: channel('rx-trade-feed:stopped'),
  'owner-changed': channel('rx-trade-feed:owner'),
};
