import { expect, it } from '@jest/globals';
import { meanings } from '../../src/protocol/classify.js';
import { invalidOptions, retriesExhausted } from '../../src/protocol/own-meanings.js';

it('stop the feed, and are rows of the table', () => {
  expect([invalidOptions, retriesExhausted]).toMatchObject([
    { code: 'invalid-options', verdict: 'stop' },
    { code: 'retries-exhausted', verdict: 'stop' },
  ]);
  expect(meanings).toEqual(expect.arrayContaining([invalidOptions, retriesExhausted]));
  // They may be met at any stage.
  for (const each of [invalidOptions, retriesExhausted]) expect(each).not.toHaveProperty('stage');
});
