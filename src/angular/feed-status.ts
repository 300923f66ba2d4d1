import type { ConnectionStatus } from '../operators/connection-status.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/** The feed stopped: it does not go on by itself, because that would be wrong. */
export interface Stopped {
  readonly state: 'stopped';
  /** When it ended, in epoch ms; for a page that came later, too. */
  readonly since: number;
  /** What stopped it. */
  readonly failure: TradeFeedError;
}

/** How it stands with the feed. */
export type FeedStatus = ConnectionStatus | Stopped;
