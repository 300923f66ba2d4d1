import { describe, expect, it } from '@jest/globals';
import { RelayFullError } from '../../src/relay/relay-full-error.js';
import { retryAfterOf } from '../../src/relay/retry-after.js';

const connectAgain = (failure: object) => ({ id: 'e.1.1.1', type: 'connect-again', data: JSON.stringify(failure) });

describe('retryAfterOf', () => {
  it.each([
    ['a relay without room', new RelayFullError('There are 2 clients.'), '5'],
    [
      'a closed relay: another replica may accept the client',
      new RelayFullError('The relay is closed.', 'closed'),
      '1',
    ],
    ['a stop', connectAgain({ retryAfterMs: 5_000 }), '5'],
    ['a stop with a longer wait, rounded up to seconds', connectAgain({ retryAfterMs: 29_001 }), '30'],
    ['a stop without a wait', connectAgain({ code: 'relay-closing' }), '5'],
  ])('returns the seconds for %s', (_, refusal, seconds) => {
    expect(retryAfterOf(refusal)).toBe(seconds);
  });
});
