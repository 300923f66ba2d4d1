import type { Subscriber } from 'rxjs';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Frame } from '../protocol/frame.js';
import { gapOfMissed } from '../protocol/gap.js';
import { workerMeanings } from '../protocol/failures/worker-meanings.js';
import type { Emit } from '../reconnect/lifecycle.js';
import { emitFrames } from './block.js';
import { fromCloneable } from './cloneable-error.js';
import type { Item } from './messages.js';
import type { ThrownValues } from './thrown-values.js';

/** The open connection, as far as the main thread has received its frames. */
export interface OpenFeed {
  /** When the connection opened, in epoch ms. */
  readonly openedAt: number;
  readonly framesReceived: number;
  /** When the newest frame was read, in epoch ms. */
  readonly lastReadAt: number;
}

/** Emits the frames and events that a worker sends. */
export interface Receiver {
  /** Emits a batch, in order, until the subscription ends. */
  receive(items: readonly Item[]): void;
  /** The open connection; `undefined` if there is none. */
  readonly open: OpenFeed | undefined;
}

/** Creates a {@link Receiver}. */
export const createReceiver = (
  subscriber: Subscriber<Frame>,
  emit: Emit,
  values: ThrownValues,
  connectionsBefore: number,
): Receiver => {
  let open: OpenFeed | undefined;
  const receiveItem = (item: Item): void => {
    switch (item.type) {
      case 'frames':
        if (open) open = { ...open, framesReceived: open.framesReceived + item.count, lastReadAt: item.to };
        return emitFrames(item, item.connection + connectionsBefore, subscriber);
      case 'missed':
        return emit(gapOfMissed(item, workerMeanings.tooSlow));
      case 'event': {
        const { event } = item;
        if (event.type !== 'opened') return emit(event);
        open = { openedAt: event.at, framesReceived: 0, lastReadAt: event.at };
        return emit({ ...event, connection: event.connection + connectionsBefore });
      }
      case 'failed':
        open = undefined;
        return emit({ ...item.event, failure: fromCloneable(item.failure, values) as TradeFeedError });
      case 'error':
        return subscriber.error(fromCloneable(item.error, values));
    }
  };
  return {
    receive: (items) => items.forEach(receiveItem),
    get open() {
      return open;
    },
  };
};
