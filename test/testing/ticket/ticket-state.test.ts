import { describe, expect, it } from '@jest/globals';
import {
  nextTicketState,
  type TicketSignal,
  type TicketState,
  ticketTransitions,
} from '../../../src/testing/ticket/ticket-state.js';

const expected: Record<TicketState, Record<TicketSignal, TicketState>> = {
  issued: { reserve: 'consumed', expire: 'expired', revoke: 'revoked' },
  consumed: { reserve: 'consumed', expire: 'consumed', revoke: 'consumed' },
  expired: { reserve: 'expired', expire: 'expired', revoke: 'expired' },
  revoked: { reserve: 'revoked', expire: 'revoked', revoke: 'revoked' },
};

const rows = Object.entries(expected).flatMap(([state, moves]) =>
  Object.entries(moves).map(([signal, next]) => [state as TicketState, signal as TicketSignal, next] as const),
);

describe('the state machine of a ticket (contract 3.1)', () => {
  it.each(rows)('%s, %s -> %s', (state, signal, next) => {
    expect(nextTicketState(state, signal)).toBe(next);
  });

  it('has only the states of this table', () => {
    expect(Object.keys(ticketTransitions).sort()).toEqual(Object.keys(expected).sort());
  });
});
