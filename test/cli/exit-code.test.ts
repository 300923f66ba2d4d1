import { describe, expect, it } from '@jest/globals';
import { CliError, exitCodeOf, localError } from '../../src/cli/cli-error.js';
import { ExitCode, exitCodeMeanings, exitCodes } from '../../src/cli/exit-code.js';
import { RecordingError, createTradeFeedError } from '../../src/index.js';
import { failureCodes } from '../support/failure-table.js';

// The table again, written by hand: the exit code of each failure.
const table = {
  2: ['invalid-options'],
  3: ['api-key-unavailable', 'invalid-api-key', 'not-entitled', 'access-expired', 'access-revoked'],
  4: ['connection-replaced'],
  5: [
    'invalid-ticket-request',
    'ticket-endpoint-without-tls',
    'ticket-request-rejected',
    'invalid-ticket',
    'handshake-rejected',
    'subprotocol-mismatch',
    'handshake-failed',
    'policy-violation',
    'invalid-frame',
  ],
  6: ['untrusted-certificate'],
  7: [
    'ticket-rate-limited',
    'credential-service-unavailable',
    'ticket-request-failed',
    'ticket-endpoint-unreachable',
    'ticket-rejected',
    'ticket-expired',
    'capacity-full',
    'handshake-unreachable',
    'client-too-slow',
    'server-shutdown',
    'connection-lost',
    'connection-stalled',
    'connection-closed',
    'retries-exhausted',
  ],
};

describe('the exit codes', () => {
  it('are those of the table', () => {
    const rows = Object.entries(table).flatMap(([exitCode, codes]) => codes.map((code) => [code, Number(exitCode)]));
    expect(exitCodes).toStrictEqual(Object.fromEntries(rows));
  });

  it('include every failure of the library', () => {
    expect(Object.keys(exitCodes).sort()).toStrictEqual(failureCodes);
  });

  it('each have a meaning', () => {
    for (const code of Object.values(ExitCode)) expect(exitCodeMeanings[code]).toEqual(expect.any(String));
  });

  it('follow from the error that ended the command', () => {
    expect(exitCodeOf(createTradeFeedError({ stage: 'stream', closeCode: 4001 }))).toBe(4);
    expect(exitCodeOf(new CliError(ExitCode.usage, 'no'))).toBe(2);
    expect(exitCodeOf(new RecordingError('no', { path: 'f' }))).toBe(8);
    expect(exitCodeOf(new Error('a bug'))).toBe(1);
    expect(exitCodeOf(undefined)).toBe(1);
  });
});

describe('localError', () => {
  it('explains common errors of the operating system, and uses its message for others', () => {
    const failure = (code?: string) =>
      localError('Cannot read it', Object.assign(new Error('EODD, odd'), { code })).message;
    expect(failure('ENOENT')).toBe('Cannot read it: there is no such file.');
    expect(failure('EODD')).toBe('Cannot read it: EODD, odd.');
    expect(failure()).toBe('Cannot read it: EODD, odd.');
  });

  it('adds a hint', () => {
    const { message, exitCode } = localError('Cannot listen', { code: 'EADDRINUSE' }, 'Choose another.');
    expect(message).toBe('Cannot listen: the port is in use. Choose another.');
    expect(exitCode).toBe(8);
  });
});
