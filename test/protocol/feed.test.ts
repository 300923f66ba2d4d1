import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Feed, feeds } from '../../src/protocol/feed.js';

describe('Feed', () => {
  it('lists the two feeds of the contract, the default first', () => {
    expect(feeds).toEqual(['market', 'raw']);
  });

  it('has a name, for what reports a wrong body', () => {
    expect(Feed.name).toBe('Feed');
  });

  it.each(['market', 'raw'])('knows %s', (feed) => {
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
  ])('does not know %j', (value) => {
    expect(Feed.is(value)).toBe(false);
    expect(Feed.decode(value)._tag).toBe('Left');
  });

  it('is one of two words, whatever it is asked about', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(Feed.is(value)).toBe(value === 'market' || value === 'raw');
      }),
    );
  });
});
