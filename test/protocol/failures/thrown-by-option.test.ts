import { describe, expect, it } from '@jest/globals';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { thrownByOption } from '../../../src/protocol/failures/thrown-by-option.js';
import type { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';

describe('thrownByOption', () => {
  it.each([new Error('mine'), 'text', undefined, null])('returns any other value unchanged: %p', (thrown) => {
    expect(thrownByOption('classify', thrown)).toBe(thrown);
  });

  it('returns a failure with the verdict `stop`, and names the option', () => {
    const thrown = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: '' });
    const failure = thrownByOption('backoff', thrown) as TradeFeedError;
    expect(thrown.verdict).toBe('backoff');
    expect(failure).toMatchObject({ code: 'server-shutdown', verdict: 'stop', closeCode: 1001 });
    expect(failure).toMatchObject({ advice: 'Your option `backoff` threw this.', meaning: thrown.meaning });
  });
});
