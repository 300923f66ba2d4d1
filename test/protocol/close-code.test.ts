import { describe, expect, it } from '@jest/globals';
import { CloseCode, CloseReason, isCloseReason } from '../../src/protocol/close-code.js';

// The table of the contract, section 7.3, word for word: code, reason, the names here.
const table = [
  [4001, 'connection replaced', 'connectionReplaced', 'connectionReplaced'],
  [4003, 'access expired', 'accessLost', 'accessExpired'],
  [4003, 'access revoked', 'accessLost', 'accessRevoked'],
  [1008, 'server push only', 'serverPushOnly', 'serverPushOnly'],
  [1013, 'client too slow', 'clientTooSlow', 'clientTooSlow'],
  [1001, 'server shutdown', 'serverShutdown', 'serverShutdown'],
] as const;

describe('CloseCode and CloseReason', () => {
  it.each(table)('name %i "%s"', (code, reason, codeName, reasonName) => {
    expect(CloseCode[codeName]).toBe(code);
    expect(CloseReason[reasonName]).toBe(reason);
  });

  it('have no other entries', () => {
    expect(Object.keys(CloseCode).sort()).toEqual([...new Set(table.map(([, , name]) => name))].sort());
    expect(Object.keys(CloseReason).sort()).toEqual(table.map(([, , , name]) => name).sort());
  });
});

describe('isCloseReason', () => {
  it.each(Object.values(CloseReason))('accepts "%s"', (reason) => {
    expect(isCloseReason(reason)).toBe(true);
  });

  it.each(['', 'Server shutdown', 'server shutdown ', 'serverShutdown', 'toString'])('rejects %j', (reason) => {
    expect(isCloseReason(reason)).toBe(false);
  });
});
