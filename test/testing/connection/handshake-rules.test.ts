import { describe, expect, it } from '@jest/globals';
import { type HandshakeFacts, handshakeRules } from '../../../src/testing/connection/handshake-rules.js';
import { firstRefusal } from '../../../src/testing/http/refusal.js';

const accepted: HandshakeFacts = {
  hasBearer: true,
  ticket: 'issued',
  isExactAddress: true,
  requested: ['a.v1'],
  subprotocol: 'a.v1',
  isReplacing: false,
  liveUsers: 0,
  capacity: 1,
};

/** Each fault alone, in the order of the checks. */
const faults: readonly (readonly [status: number, code: string, fault: Partial<HandshakeFacts>])[] = [
  [401, 'ticket-missing', { hasBearer: false, ticket: undefined }],
  [401, 'ticket-unknown', { ticket: undefined }],
  [401, 'ticket-consumed', { ticket: 'consumed' }],
  [401, 'ticket-expired', { ticket: 'expired' }],
  [401, 'ticket-revoked', { ticket: 'revoked' }],
  [400, 'address-mismatch', { isExactAddress: false }],
  [400, 'subprotocol-mismatch', { requested: ['b.v1'] }],
  [503, 'capacity-full', { liveUsers: 1 }],
];

describe('the refusals of the handshake (contract 7.2)', () => {
  it.each([
    ['the subprotocol of the ticket', {}],
    ['no requested subprotocol', { requested: undefined }],
    ['room for one more user', { liveUsers: 1, capacity: 2 }],
    ['a full service, but a connection of the same user to replace', { liveUsers: 1, isReplacing: true }],
    ['a capacity of 0, but a connection of the same user to replace', { capacity: 0, liveUsers: 1, isReplacing: true }],
  ])('accepts: %s', (_, facts) => {
    expect(firstRefusal(handshakeRules, { ...accepted, ...facts })).toBeUndefined();
  });

  it.each(faults)('%d %s', (status, code, fault) => {
    expect(firstRefusal(handshakeRules, { ...accepted, ...fault })).toMatchObject({ status, code });
  });

  it.each([[['']], [['A.v1']], [['a.v1', 'b.v1']], [['b.v1', 'a.v1']], [['a.v1', 'a.v1']]])(
    '400 for the requested subprotocols %j',
    (requested) => {
      expect(firstRefusal(handshakeRules, { ...accepted, requested })).toMatchObject({ code: 'subprotocol-mismatch' });
    },
  );

  it.each(faults.map((row, index) => [row[1], index] as const))(
    '%s is checked before the later rules',
    (code, index) => {
      const all = faults.slice(index).reduceRight((facts, [, , fault]) => ({ ...facts, ...fault }), accepted);
      expect(firstRefusal(handshakeRules, all)).toMatchObject({ code });
    },
  );

  it('has only the rules of this table', () => {
    expect(handshakeRules.map(({ status, code }) => [status, code])).toEqual(
      faults.map(([status, code]) => [status, code]),
    );
  });
});
