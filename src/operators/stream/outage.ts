import type { LifecycleEvent } from '../../protocol/event.js';
import type { TradeFeedError } from '../../protocol/failure.js';

/** An outage that goes on: its `gap` comes when the feed is open again. */
export interface Outage {
  /** The end of the last open connection, in epoch ms; for a stalled one, when it was last heard. */
  readonly from: number;
  /** What began it. */
  readonly failure: TradeFeedError;
}

/** Follows the outages of a feed: one begins when an open connection ends, and ends with the next opening. */
export const nextOutage = (going: Outage | undefined, event: LifecycleEvent): Outage | undefined => {
  if (event.type === 'gap' || event.type === 'opened') return undefined;
  const begins = event.type === 'disconnected' && event.failure.stage === 'stream';
  return begins ? { from: event.failure.endedAt, failure: event.failure } : going;
};
