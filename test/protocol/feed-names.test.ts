import { describe, expect, it } from '@jest/globals';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { checkFeed, feeds } from '../../src/protocol/feed-names.js';

describe('checkFeed', () => {
  it.each(feeds)('accepts %s', (feed) => {
    expect(() => checkFeed(feed)).not.toThrow();
  });

  it.each([null, '', 'Market', 'toString', '__proto__', 0, ['raw'], { raw: 'raw' }])('throws for %p', (feed) => {
    const check = () => checkFeed(feed);
    expect(check).toThrow(TradeFeedError);
    expect(check).toThrow(
      expect.objectContaining({
        code: 'invalid-options',
        message: expect.stringContaining("`feed` must be 'market' or 'raw'"),
      }),
    );
  });

  it('never shows the wrong value, which may be a key', () => {
    expect(() => checkFeed('secret-6')).not.toThrow('secret-6');
  });
});
