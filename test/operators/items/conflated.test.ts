import { expect, it } from '@jest/globals';
import { Conflated } from '../../../src/operators/items/conflated.js';

it('Conflated has the key, its newest value, and the number of values', () => {
  expect({ ...new Conflated('EURUSD', { price: 1.1 }, 3) }).toEqual({
    type: 'conflated',
    key: 'EURUSD',
    value: { price: 1.1 },
    count: 3,
  });
});
