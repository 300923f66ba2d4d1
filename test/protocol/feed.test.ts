import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Feed } from '../../src/protocol/feed.js';
import { feeds, isFeed } from '../../src/protocol/feed-names.js';

describe('Feed', () => {
  it('lists the two feeds of the contract, the default first', () => {
    expect(feeds).toEqual(['market', 'raw']);
    expect(Object.keys(Feed.keys)).toEqual(feeds);
  });

  it('has a name for reports of a wrong body', () => {
    expect(Feed.name).toBe('Feed');
  });

  it.each(['market', 'raw'])('accepts %s', (feed) => {
    expect(Feed.is(feed)).toBe(true);
    expect(isFeed(feed)).toBe(true);
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
    expect(isFeed(value)).toBe(false);
    expect(Feed.decode(value)._tag).toBe('Left');
  });

  it('accepts two words and no other value', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(Feed.is(value)).toBe(value === 'market' || value === 'raw');
        expect(isFeed(value)).toBe(Feed.is(value));
      }),
    );
  });
});
