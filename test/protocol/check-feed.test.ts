import { expect, it } from '@jest/globals';
import { checkFeed } from '../../src/protocol/check-feed.js';
import { TradeFeedError } from '../../src/protocol/failure.js';
import { feeds } from '../../src/protocol/feed.js';

it.each(feeds)('lets %s pass', (feed) => {
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

it('never shows what was given: it may be a key', () => {
  expect(() => checkFeed('secret-6')).not.toThrow('secret-6');
});
