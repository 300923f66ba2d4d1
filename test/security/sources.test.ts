import { describe, expect, it } from '@jest/globals';
import { filesIn, read } from '../docs/fences.js';

/** What secrets look like that end up in sources. */
const secrets: Readonly<Record<string, RegExp>> = {
  'a private key': /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*[A-Za-z0-9+/]{16}/,
  'a token of a platform': /\b(?:ghp|gho|ghs|github_pat|npm|glpat|xox[abp]|sk_live|rk_live)[_-][A-Za-z0-9_]{16,}/,
  'a key of a cloud': /\bAKIA[0-9A-Z]{16}\b/,
  'an address with a password': /\b[a-z]+:\/\/[^\s/:@'"`]+:[^\s/:@'"`]+@/,
  'a token of JSON': /\beyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/,
};

describe('the sources that are published', () => {
  it('hold no key, no token and no address with a password', () => {
    const files = [...filesIn('src', '.ts'), 'README.md', 'CHANGELOG.md', 'package.json'];
    expect(files.length).toBeGreaterThan(100);
    const found = files.flatMap((file) =>
      Object.entries(secrets).flatMap(([what, pattern]) => (pattern.test(read(file)) ? [`${file}: ${what}`] : [])),
    );
    expect(found).toEqual([]);
  });

  it.each([
    ['a private key', `-----BEGIN EC PRIVATE KEY-----\n${'MHcCAQEEIA'.repeat(3)}`],
    ['a token of a platform', `ghp_${'a1B2'.repeat(9)}`],
    ['a key of a cloud', `AKIA${'Q7'.repeat(8)}`],
    ['an address with a password', 'https://user:word@example.com/'],
    ['a token of JSON', `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}`],
  ])('are searched by a pattern that finds %s', (what, secret) => {
    expect(secret).toMatch(secrets[what] as RegExp);
  });
});
