import { describe, expect, it } from '@jest/globals';
import { failureWords, whatHappened } from '../../../src/cli/view/failure-words.js';
import { eventWords } from '../../../src/cli/view/words.js';
import { TradeFeedError, createTradeFeedError } from '../../../src/index.js';
import { serviceMeanings } from '../../../src/protocol/failures/service-meanings.js';
import { ending, expired, gap, opening } from '../support/events.js';
import { copyFailure } from '../../../src/protocol/failures/trade-feed-error.js';

describe('eventWords', () => {
  it('describes each event', () => {
    const lost = { stage: 'stream', closeCode: 1006 } as const;
    const events = [
      ...opening(0, 1),
      ...ending(0, lost, 1_200, 2),
      ...ending(0, expired, 0).slice(1),
      gap(0, 3_200, expired),
    ];
    expect(events.map(eventWords)).toStrictEqual([
      'requesting a ticket for market',
      'ticket issued, good for one handshake',
      'connection 1 is open: frames of market follow',
      'disconnected: The connection broke off without a close frame (close code 1006).',
      'reconnecting in 1.2 s (attempt 2), with a fresh ticket',
      'reconnecting now, with a fresh ticket',
      'gap of 3.2 s: its frames are not replayed',
    ]);
  });
});

describe('failureWords', () => {
  it.each(serviceMeanings.map((row) => [row.code, row] as const))('of %s names no option of the library', (_, row) => {
    const status = typeof row.status === 'number' ? row.status : row.status && 599;
    const closeCode = typeof row.closeCode === 'number' ? row.closeCode : row.closeCode && 4999;
    const isObserved = status !== undefined || closeCode !== undefined;
    const failure = createTradeFeedError({
      stage: row.stage ?? 'ticket',
      ...(isObserved ? { status, closeCode, reason: row.reason } : { code: row.code }),
    });
    expect(failureWords(failure)).not.toMatch(/`\w*[A-Z]|option/);
    expect(failureWords(failure)).toMatch(/^[A-Z].*\.$/);
  });

  it('ends with the advice', () => {
    const failure = createTradeFeedError({ stage: 'ticket', status: 401 });
    expect(whatHappened(failure)).toBe('The service does not accept the API key (HTTP 401).');
    expect(failureWords(failure)).toBe(
      'The service does not accept the API key (HTTP 401). Set TRADE_FEED_API_KEY to a valid key, or use --key-file.',
    );
  });

  it('reports the failure before it, once', () => {
    const revoked = createTradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access revoked' });
    const forbidden = createTradeFeedError({ stage: 'ticket', status: 403 });
    expect(failureWords(copyFailure(forbidden, { previous: revoked }))).toContain(
      'Before that: Access was revoked (close code 4003, "access revoked").',
    );
    expect(failureWords(copyFailure(forbidden, { previous: forbidden }))).not.toContain('Before that');
    const exhausted = createTradeFeedError({
      stage: 'ticket',
      code: 'retries-exhausted',
      detail: 'maxAttempts is 2',
      cause: forbidden,
    });
    expect(failureWords(exhausted)).toBe(
      'The feed gave up after --retries reconnects without a stable connection. ' +
        'Before that: The account is inactive or is not entitled to the stream (HTTP 403). Use a larger --retries.',
    );
  });

  it('shows no control characters of a close reason', () => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4999, reason: '\x1b[31mred' });
    expect(whatHappened(failure)).toBe('The connection was closed (close code 4999, "␛[31mred").');
    const own = new TradeFeedError({ ...failure, summary: 'Its own words.' });
    expect(whatHappened(own)).toBe('Its own words.');
  });
});
