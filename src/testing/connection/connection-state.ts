import { CloseCode, CloseReason } from '../../protocol/close-code.js';

/** Names the states of a connection (contract, section 3.2). */
export type ConnectionState = 'none' | 'open' | 'closed';

/** Names what can happen to a connection; `client-gone` is the client's own end, with or without a close frame. */
export type ConnectionSignal =
  | 'register'
  | 'replace'
  | 'client-message'
  | 'access-expired'
  | 'access-revoked'
  | 'backlog'
  | 'shutdown'
  | 'protocol-error'
  | 'client-gone';

/** One move of the machine: the next state, and the close frame that the service sends on it. */
export interface ConnectionMove {
  readonly next: ConnectionState;
  /** Code and reason of the close frame (contract, section 7.3); absent when the service sends none of its own. */
  readonly close?: { readonly code: number; readonly reason: string };
}

const closing = (code: number, reason: string): ConnectionMove => ({ next: 'closed', close: { code, reason } });

/**
 * The state machine of a connection (contract, sections 3.2 and 7.3): state, signal, move.
 *
 * A signal that a state does not name changes nothing: `closed` is final, so the first cause of a close is the one told.
 * `protocol-error` is RFC 6455's own (section 7.4.1); the contract is silent.
 */
export const connectionTransitions: Readonly<
  Record<ConnectionState, Readonly<Partial<Record<ConnectionSignal, ConnectionMove>>>>
> = {
  none: { register: { next: 'open' } },
  open: {
    replace: closing(CloseCode.connectionReplaced, CloseReason.connectionReplaced),
    'client-message': closing(CloseCode.serverPushOnly, CloseReason.serverPushOnly),
    'access-expired': closing(CloseCode.accessLost, CloseReason.accessExpired),
    'access-revoked': closing(CloseCode.accessLost, CloseReason.accessRevoked),
    backlog: closing(CloseCode.clientTooSlow, CloseReason.clientTooSlow),
    shutdown: closing(CloseCode.serverShutdown, CloseReason.serverShutdown),
    'protocol-error': closing(1002, ''),
    'client-gone': { next: 'closed' },
  },
  closed: {},
};
