import { describe, expect, test } from '@jest/globals';
import { suggest } from '../../../src/cli/arguments/suggest.js';

describe('suggest', () => {
  const known = ['demo', 'listen', 'serve', 'count', 'mount'];
  test.each([
    ['lsiten', ' Did you mean listen?'],
    ['listn', ' Did you mean listen?'],
    ['listenn', ' Did you mean listen?'],
    ['sarve', ' Did you mean serve?'],
    ['dmo', ' Did you mean demo?'],
    ['ount', ' Did you mean count?'],
    ['moutn', ' Did you mean mount?'],
    ['publish', ''],
    ['', ''],
  ])('of `%s` is `%s`', (typed, says) => {
    expect(suggest(typed, known)).toBe(says);
  });
});
