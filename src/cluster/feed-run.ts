import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { createGap } from '../protocol/gap.js';
import type { TicketSettings } from '../options.js';
import { feedEvents$, prepareConnections } from '../trade-feed.js';
import type { Input } from './election/election.js';

/** The connection of an owner to the service. */
export interface FeedRun {
  open(): void;
  /** Sends the handshake that waits. */
  allow(): void;
  close(): void;
}

/** What a {@link FeedRun} reports. */
export interface FeedRunHandlers {
  readonly input: (input: Input) => void;
  readonly frame: (frame: Frame) => void;
  readonly event: (event: LifecycleEvent) => void;
  /** Is called with an error that no reconnect can help. */
  readonly failed: (error: unknown) => void;
}

/** Creates a {@link FeedRun}. It is closed until `open` is called, but has loaded what a connection needs: a takeover must be fast. */
export const createFeedRun = (
  feed: Feed,
  settings: TicketSettings,
  where: string,
  { input, frame, event, failed }: FeedRunHandlers,
): FeedRun => {
  let subscription: Subscription | undefined;
  let waiting: Subscriber<void> | undefined;
  /** The failure that ended the last connection, until the next one is open. */
  let replaced: TradeFeedError | undefined;

  // A connection reports the failure again.
  prepareConnections().catch(() => undefined);

  const beforeHandshake = new Observable<void>((subscriber) => {
    waiting = subscriber;
    input({ type: 'handshake' });
    return () => {
      waiting = undefined;
    };
  });

  const receiveEvent = (each: LifecycleEvent): void => {
    // The election decides what the end of the feed means.
    if (each.type === 'stopped') return;
    const current = subscription;
    if (each.type === 'disconnected') {
      const { stage, status } = each.failure;
      input({ type: 'disconnected', isUnanswered: stage === 'handshake' && status === undefined });
    }
    if (each.type === 'opened') input({ type: 'opened' });
    // The election may have closed this feed.
    if (current?.closed === true) return;
    event(each);
    if (each.type !== 'opened' || replaced === undefined) return;
    event(createGap(replaced.endedAt, each.at, replaced));
    replaced = undefined;
  };

  const receiveError = (error: unknown): void => {
    subscription = undefined;
    const isReplaced = error instanceof TradeFeedError && error.code === 'connection-replaced';
    if (isReplaced) replaced = error;
    else failed(error);
    input({ type: 'failed', isReplaced });
  };

  const close = (): void => {
    const current = subscription;
    subscription = undefined;
    replaced = undefined;
    current?.unsubscribe();
  };

  return {
    open: () => {
      const before = replaced;
      close();
      replaced = before;
      subscription = feedEvents$(feed, settings, { user: { where }, beforeHandshake }).subscribe({
        next: (each) => (each.type === 'frame' ? frame(each) : receiveEvent(each)),
        error: receiveError,
      });
    },
    allow: () => {
      waiting?.next();
    },
    close,
  };
};
