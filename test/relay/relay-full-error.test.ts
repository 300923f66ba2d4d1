import { expect, it } from '@jest/globals';
import { RelayFullError } from '../../src/relay/index.js';

it('says what happened and when to come back', () => {
  const error = new RelayFullError('There are 2 clients. Come back later.');
  expect(error).toBeInstanceOf(Error);
  expect({ name: error.name, message: error.message, retryAfterMs: error.retryAfterMs }).toEqual({
    name: 'RelayFullError',
    message: 'There are 2 clients. Come back later.',
    retryAfterMs: 5_000,
  });
});
