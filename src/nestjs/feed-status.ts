import type { ConnectionStatus, StoppedStatus } from '../operators/connection-status.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createFailure } from '../protocol/failures/meaning.js';

/** The feed has no subscriber, so there is no connection. */
export interface Idle {
  readonly state: 'idle';
  /** When this status began, in epoch ms. */
  readonly since: number;
}

/** The status of the feed of a module. */
export type FeedStatus = ConnectionStatus | Idle;

/** Returns the status of a feed that loses its last subscriber now. */
export const idleNow = (): Idle => ({ state: 'idle', since: Date.now() });

/**
 * Returns the status of a feed that errors now.
 *
 * @param error - the error of the feed. An error that is not a `TradeFeedError` was thrown by a function in the options, and becomes the `cause`
 */
export const stoppedBy = (error: unknown): StoppedStatus => ({
  state: 'stopped',
  since: Date.now(),
  failure: error instanceof TradeFeedError ? error : createFailure(applicationError, { stage: 'stream', cause: error }),
});

const applicationError = {
  code: 'relay-source-failed',
  verdict: 'stop',
  meaning: 'An error of the application stopped the feed.',
  advice: 'See the log of the server.',
} as const;
