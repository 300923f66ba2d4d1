import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { checkFeed, Feed, feeds } from '../../src/protocol/feed.js';

describe('Feed', () => {
  it('lists the two feeds of the contract, the default first', () => {
    expect(feeds).toEqual(['market', 'raw']);
  });

  it('has a name for reports of a wrong body', () => {
    expect(Feed.name).toBe('Feed');
  });

  it.each(['market', 'raw'])('accepts %s', (feed) => {
    expect(Feed.is(feed)).toBe(true);
    expect(Feed.decode(feed)).toEqual({ _tag: 'Right', right: feed });
    expect(Feed.encode(feed as Feed)).toBe(feed);
  });

  it.each([
    '',
    'Market',
    'raw ',
    'toString',
    '__proto__',
    'constructor',
    0,
    null,
    undefined,
    ['raw'],
    { market: null },
  ])('rejects %j', (value) => {
    expect(Feed.is(value)).toBe(false);
    expect(Feed.decode(value)._tag).toBe('Left');
  });

  it('accepts two words and no other value', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(Feed.is(value)).toBe(value === 'market' || value === 'raw');
      }),
    );
  });
});

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
