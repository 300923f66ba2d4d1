import type { ClusterLifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { FeedFigures } from './feed-figures.js';
import type { Instruments } from './instruments.js';

/** Adds a lifecycle event to the figures of its feed, and to the instruments that are not observable. */
export const countEvent = (instruments: Instruments, figures: FeedFigures, event: ClusterLifecycleEvent): void => {
  const by = ({ code }: TradeFeedError) => ({ ...figures.attributes, 'error.type': code });
  switch (event.type) {
    case 'disconnected':
      // A relay whose feed has stopped emits it, too, and then waits for a restart.
      if (event.failure.verdict !== 'stop') instruments.reconnects.add(1, by(event.failure));
      return;
    case 'gap':
      figures.missed += event.missed ?? 0;
      instruments.gapDuration.record(event.durationMs / 1_000, by(event.failure));
      return;
    case 'owner-changed':
      figures.handovers += 1;
      return;
    case 'ticket-requested':
    case 'ticket-issued':
    case 'opened':
    case 'reconnecting':
    case 'stopped':
    case 'watermark':
      return;
  }
};
