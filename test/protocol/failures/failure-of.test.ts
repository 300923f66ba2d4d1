import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { failureOf } from '../../../src/protocol/failures/failure-of.js';
import { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';

describe('failureOf', () => {
  it('returns a failure unchanged', () => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: '' });
    expect(failureOf(failure)).toBe(failure);
  });

  it.each([new Error('secret'), 'secret', undefined, null, { code: 'connection-lost' }])(
    'returns an error of the application as the cause of a failure that stops, with fixed texts: %p',
    (error) => {
      const failure = failureOf(error);
      expect(failure).toBeInstanceOf(TradeFeedError);
      expect(failure).toMatchObject({ code: 'relay-source-failed', stage: 'stream', verdict: 'stop' });
      expect(failure.cause).toBe(error);
      expect(failure.message).toBe(
        'An error of the application stopped the feed. See the cause, or the log of the server.',
      );
      expect(failure.toPublic().cause).toBeUndefined();
    },
  );
});
