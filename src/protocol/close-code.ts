/**
 * Names the WebSocket close codes of the service (contract, section 7.3).
 *
 * @example
 * ```ts
 * import { CloseCode } from 'rx-trade-feed';
 *
 * CloseCode.connectionReplaced; // 4001
 * ```
 */
export const CloseCode = {
  /** The service shuts down: reconnect with backoff. */
  serverShutdown: 1001,
  /** The client sent a message: reconnect only after correction. */
  serverPushOnly: 1008,
  /** The client did not keep up with the stream. */
  clientTooSlow: 1013,
  /** Another valid connection of the user replaced this one: do not reconnect. */
  connectionReplaced: 4001,
  /** Access expired or was revoked: see the reason. */
  accessLost: 4003,
} as const;
export type CloseCode = (typeof CloseCode)[keyof typeof CloseCode];

/** Names the close reasons of the service, exactly as sent (contract, section 7.3). */
export const CloseReason = {
  serverShutdown: 'server shutdown',
  serverPushOnly: 'server push only',
  clientTooSlow: 'client too slow',
  connectionReplaced: 'connection replaced',
  accessExpired: 'access expired',
  accessRevoked: 'access revoked',
} as const;
export type CloseReason = (typeof CloseReason)[keyof typeof CloseReason];

/** Returns whether the contract defines a close reason. */
export const isCloseReason = (reason: string): reason is CloseReason =>
  (Object.values(CloseReason) as string[]).includes(reason);
