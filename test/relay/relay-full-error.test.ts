import { expect, it } from '@jest/globals';
import { RelayFullError } from '../../src/relay/index.js';

it('has a message, a reason and the time until a retry', () => {
  const error = new RelayFullError('There are 2 clients. Retry later.');
  expect(error).toBeInstanceOf(Error);
  expect(error.message).toBe('There are 2 clients. Retry later.');
  expect({ ...error }).toEqual({ name: 'RelayFullError', reason: 'full', retryAfterMs: 5_000 });
  expect(new RelayFullError('x', 'closed')).toMatchObject({ reason: 'closed', retryAfterMs: 1_000 });
});
