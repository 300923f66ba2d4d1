import { describe, expect, it } from '@jest/globals';
import {
  type ConnectionSignal,
  type ConnectionState,
  connectionTransitions,
} from '../../../src/testing/connection/connection-state.js';

type Move = readonly [next: ConnectionState, code?: number, reason?: string] | undefined;

const signals: Record<ConnectionSignal, Record<ConnectionState, Move>> = {
  register: { none: ['open'], open: undefined, closed: undefined },
  replace: { none: undefined, open: ['closed', 4001, 'connection replaced'], closed: undefined },
  'client-message': { none: undefined, open: ['closed', 1008, 'server push only'], closed: undefined },
  'access-expired': { none: undefined, open: ['closed', 4003, 'access expired'], closed: undefined },
  'access-revoked': { none: undefined, open: ['closed', 4003, 'access revoked'], closed: undefined },
  backlog: { none: undefined, open: ['closed', 1013, 'client too slow'], closed: undefined },
  shutdown: { none: undefined, open: ['closed', 1001, 'server shutdown'], closed: undefined },
  'protocol-error': { none: undefined, open: ['closed', 1002, ''], closed: undefined },
  'client-gone': { none: undefined, open: ['closed'], closed: undefined },
};

const rows = Object.entries(signals).flatMap(([signal, moves]) =>
  Object.entries(moves).map(([state, move]) => [state as ConnectionState, signal as ConnectionSignal, move] as const),
);

describe('the state machine of a connection (contract 3.2 and 7.3)', () => {
  it.each(rows)('%s, %s -> %j', (state, signal, move) => {
    const { next, close } = connectionTransitions[state][signal] ?? {};
    expect([next, close?.code, close?.reason]).toEqual([move?.[0], move?.[1], move?.[2]]);
  });

  it('has only the signals of this table', () => {
    const known = Object.values(connectionTransitions).flatMap((moves) => Object.keys(moves));
    expect([...new Set(known)].sort()).toEqual(Object.keys(signals).sort());
  });
});
