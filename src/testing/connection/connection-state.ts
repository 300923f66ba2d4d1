import { CloseCode, CloseReason } from '../../protocol/close-code.js';

/** The states of a connection (contract, section 3.2). */
export type ConnectionState = 'none' | 'open' | 'closed';

/** The signals to a connection. `client-gone`: the client closed, with or without a close frame. */
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

/** A transition: the next state, and the close frame that the service sends. */
export interface ConnectionTransition {
  readonly next: ConnectionState;
  /** Code and reason of the close frame (contract, section 7.3); absent if the service sends no close frame. */
  readonly close?: { readonly code: number; readonly reason: string };
}

const closing = (code: number, reason: string): ConnectionTransition => ({ next: 'closed', close: { code, reason } });

/**
 * The state machine of a connection (contract, sections 3.2 and 7.3): state, signal, transition.
 *
 * A signal that is not listed for a state changes nothing. `closed` is final, so the first cause of a close is reported. The contract does not
 * define `protocol-error`; its code is from RFC 6455, section 7.4.1.
 */
export const connectionTransitions: Readonly<
  Record<ConnectionState, Readonly<Partial<Record<ConnectionSignal, ConnectionTransition>>>>
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
