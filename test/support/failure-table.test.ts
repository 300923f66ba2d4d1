import { describe, expect, it } from '@jest/globals';
import { expectedFailure, failureCodes, failureTable, stoppingCodes } from './failure-table.js';

describe('the failure table of the tests', () => {
  it('has a row for every code, and no row twice', () => {
    expect([...new Set(failureTable.map(({ code }) => code))]).toEqual(failureCodes);
    const patterns = failureTable.map(({ verdict: _, ...row }) => JSON.stringify(row));
    expect(new Set(patterns).size).toBe(patterns.length);
  });

  it.each([
    [{ stage: 'ticket', status: 503 }, 'credential-service-unavailable', 'backoff'],
    [{ stage: 'ticket', status: 599 }, 'ticket-request-failed', 'backoff'],
    [{ stage: 'ticket', status: 600 }, 'ticket-request-rejected', 'stop'],
    [{ stage: 'handshake', status: 503 }, 'capacity-full', 'backoff'],
    [{ stage: 'handshake', status: 429 }, 'handshake-failed', 'backoff'],
    [{ stage: 'handshake', status: 101 }, 'handshake-failed', 'stop'],
    [{ stage: 'stream', closeCode: 4003, reason: 'access expired' }, 'access-expired', 'renew'],
    [{ stage: 'stream', closeCode: 4003, reason: 'another' }, 'connection-closed', 'renew'],
    [{ stage: 'stream', closeCode: 4003 }, 'connection-closed', 'renew'],
    [{ stage: 'stream', closeCode: 1000, reason: 'access expired' }, 'connection-closed', 'backoff'],
    [{ stage: 'stream', closeCode: 1006, code: 'connection-lost' }, 'connection-lost', 'renew'],
    [{ stage: 'handshake', code: 'untrusted-certificate' }, 'untrusted-certificate', 'stop'],
    [{ stage: 'stream', code: 'retries-exhausted' }, 'retries-exhausted', 'stop'],
  ] as const)('maps %j to %s, %s', (observed, code, verdict) => {
    expect(expectedFailure(observed)).toEqual({ stage: observed.stage, code, verdict });
  });

  it('rejects a failure without a row', () => {
    expect(() => expectedFailure({ stage: 'stream', status: 401 })).toThrow(
      'no row for {"stage":"stream","status":401}',
    );
    expect(() => expectedFailure({ stage: 'ticket', code: 'no-such-code' })).toThrow('no row');
  });

  it('knows which codes always stop the feed', () => {
    expect(stoppingCodes).toContain('connection-replaced');
    expect(stoppingCodes).not.toContain('handshake-failed');
  });
});
