import { expect, it } from '@jest/globals';
import { serviceMeanings } from '../../../src/protocol/failures/service-meanings.js';
import { invalidOptions, retriesExhausted } from '../../../src/protocol/failures/client-meanings.js';

it('stop the feed at any stage, and are rows of the table', () => {
  expect([invalidOptions, retriesExhausted]).toMatchObject([
    { code: 'invalid-options', verdict: 'stop' },
    { code: 'retries-exhausted', verdict: 'stop' },
  ]);
  expect(serviceMeanings).toEqual(expect.arrayContaining([invalidOptions, retriesExhausted]));
  for (const each of [invalidOptions, retriesExhausted]) expect(each).not.toHaveProperty('stage');
});
