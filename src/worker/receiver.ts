import type { Subscriber } from 'rxjs';
import type { LifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Frame } from '../protocol/frame.js';
import { gapOfMissed } from '../protocol/gap.js';
import { workerMeanings } from '../protocol/failures/worker-meanings.js';
import { emitFrames } from './block.js';
import { crossed, type Keeping } from './crossed-error.js';
import type { Item } from './messages.js';

/** What is known of the connection that is open. */
export interface Seen {
  /** When it opened, in epoch ms. */
  readonly openedAt: number;
  readonly framesReceived: number;
  /** When the newest of them was read, in epoch ms. */
  readonly heardAt: number;
}

/** Makes frames and events of what a worker hands over. */
export interface Receiver {
  /** Emits and tells a batch, in order, for as long as the subscriber is open. */
  take(items: readonly Item[]): void;
  /** The connection that is open, as far as it was handed over. */
  readonly open: Seen | undefined;
}

/** Makes it. */
export const createReceiver = (
  subscriber: Subscriber<Frame>,
  tell: (event: LifecycleEvent) => void,
  keeping: Keeping,
  connectionsBefore: number,
): Receiver => {
  let open: Seen | undefined;
  const receive = (item: Item): void => {
    switch (item.type) {
      case 'frames':
        if (open) open = { ...open, framesReceived: open.framesReceived + item.count, heardAt: item.to };
        return emitFrames(item, item.connection + connectionsBefore, subscriber);
      case 'missed':
        return tell(gapOfMissed(item, workerMeanings.tooSlow));
      case 'event': {
        const { event } = item;
        if (event.type !== 'opened') return tell(event);
        open = { openedAt: event.at, framesReceived: 0, heardAt: event.at };
        return tell({ ...event, connection: event.connection + connectionsBefore });
      }
      case 'failed':
        open = undefined;
        return tell({ ...item.event, failure: crossed(item.failure, keeping) as TradeFeedError });
      case 'error':
        return subscriber.error(crossed(item.error, keeping));
    }
  };
  return {
    take: (items) => items.forEach(receive),
    get open() {
      return open;
    },
  };
};
