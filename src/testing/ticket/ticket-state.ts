/** The states of a ticket (contract, section 3.1). */
export type TicketState = 'issued' | 'consumed' | 'expired' | 'revoked';

/** The signals to a ticket: a handshake reserves it, its deadline passes, the service revokes it. */
export type TicketSignal = 'reserve' | 'expire' | 'revoke';

/**
 * The state machine of a ticket (contract, section 3.1): state, signal, next state.
 *
 * A signal that is not listed for a state changes nothing; the other three states are final. `reserve` happens before the answer to the handshake, so
 * a refused handshake also consumes its ticket ("single-use at the handshake reservation stage").
 */
export const ticketTransitions: Readonly<Record<TicketState, Readonly<Partial<Record<TicketSignal, TicketState>>>>> = {
  issued: { reserve: 'consumed', expire: 'expired', revoke: 'revoked' },
  consumed: {},
  expired: {},
  revoked: {},
};

/** Returns the state after a signal. */
export const nextTicketState = (state: TicketState, signal: TicketSignal): TicketState =>
  ticketTransitions[state][signal] ?? state;
