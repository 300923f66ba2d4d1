/** Names the states of a ticket (contract, section 3.1). */
export type TicketState = 'issued' | 'consumed' | 'expired' | 'revoked';

/** Names what can happen to a ticket: a handshake reserves it, its deadline passes, the service revokes it. */
export type TicketSignal = 'reserve' | 'expire' | 'revoke';

/**
 * The state machine of a ticket (contract, section 3.1): state, signal, next state.
 *
 * A signal that a state does not name changes nothing: the three other states are final. `reserve` comes before the
 * handshake is answered, so a handshake that is then refused has used its ticket up ("single-use at the handshake
 * reservation stage").
 */
export const ticketTransitions: Readonly<Record<TicketState, Readonly<Partial<Record<TicketSignal, TicketState>>>>> = {
  issued: { reserve: 'consumed', expire: 'expired', revoke: 'revoked' },
  consumed: {},
  expired: {},
  revoked: {},
};

/** Gives the state after a signal. */
export const nextTicketState = (state: TicketState, signal: TicketSignal): TicketState =>
  ticketTransitions[state][signal] ?? state;
