import { describe, expect, it } from '@jest/globals';
import { documents, filesIn, read } from '../docs/fences.js';

/** What secrets look like in source files. */
const secrets: Readonly<Record<string, RegExp>> = {
  'a private key': /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s*[A-Za-z0-9+/]{16}/,
  'a platform token': /\b(?:ghp|gho|ghs|github_pat|npm|glpat|xox[abp]|sk_live|rk_live)[_-][A-Za-z0-9_]{16,}/,
  'a cloud key': /\bAKIA[0-9A-Z]{16}\b/,
  // The guides write `password` as a placeholder.
  'an address with a password': /\b[a-z]+:\/\/[^\s/:@'"`]+:(?!password@)[^\s/:@'"`]+@/,
  'a JSON Web Token': /\beyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/,
};

describe('the published sources', () => {
  it('contain no key, no token and no address with a password', () => {
    const files = [...filesIn('src', '.ts'), ...documents(), 'CHANGELOG.md', 'package.json'];
    expect(files.length).toBeGreaterThan(100);
    const found = files.flatMap((file) =>
      Object.entries(secrets).flatMap(([what, pattern]) => (pattern.test(read(file)) ? [`${file}: ${what}`] : [])),
    );
    expect(found).toEqual([]);
  });

  it.each([
    ['a private key', `-----BEGIN EC PRIVATE KEY-----\n${'MHcCAQEEIA'.repeat(3)}`],
    ['a platform token', `ghp_${'a1B2'.repeat(9)}`],
    ['a cloud key', `AKIA${'Q7'.repeat(8)}`],
    ['an address with a password', 'https://user:word@example.com/'],
    ['a JSON Web Token', `eyJ${'a'.repeat(20)}.${'b'.repeat(20)}`],
  ])('are searched with a pattern that finds %s', (what, secret) => {
    expect(secret).toMatch(secrets[what] as RegExp);
  });
});
