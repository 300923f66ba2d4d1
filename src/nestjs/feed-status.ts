import type { ConnectionStatus } from '../operators/connection-status.js';

/** Nobody is subscribed, so there is no connection. */
export interface Idle {
  readonly state: 'idle';
  /** When that began, in epoch ms. */
  readonly since: number;
}

/** The feed stopped: it does not reconnect, because that makes no sense. */
export interface Stopped {
  readonly state: 'stopped';
  /** When that was, in epoch ms. */
  readonly since: number;
  /** What stopped it: a `TradeFeedError`, unless a function of yours in the options threw. */
  readonly failure: unknown;
}

/** How it stands with the feed of a module. */
export type FeedStatus = ConnectionStatus | Idle | Stopped;
