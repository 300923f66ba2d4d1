import type { ConnectionStatus, StoppedStatus } from '../operators/connection-status.js';
import { failureOf } from '../protocol/failures/failure-of.js';

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

/** Returns the status of a feed that errors now. */
export const stoppedBy = (error: unknown): StoppedStatus => ({
  state: 'stopped',
  since: Date.now(),
  failure: failureOf(error),
});
