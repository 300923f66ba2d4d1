import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { resolveTicketOptions } from '../../src/options.js';
import { apiKey$ } from '../../src/transport/api-key.js';

const keyOf = (apiKey: () => string | Promise<string>, ticketTimeoutMs = 5_000) =>
  firstValueFrom(apiKey$(resolveTicketOptions({ baseUrl: 'http://localhost', apiKey, ticketTimeoutMs })));

// eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as a user's function may
const throwing = (reason: unknown): Promise<never> => Promise.reject(reason);

describe('apiKey$', () => {
  it('wraps the key that a function returns in a Secret', async () => {
    const key = await keyOf(() => Promise.resolve('planted'));
    expect([String(key), key.reveal()]).toEqual(['[secret]', 'planted']);
  });

  it.each([
    ['rejects with an error', new Error('no vault'), 'no vault'],
    ['rejects with something else', 'planted-secret', 'it rejected'],
  ])(
    'fails with api-key-unavailable when the function %s, and shows only the message of an error',
    async (_, thrown, words) => {
      const failure = keyOf(() => throwing(thrown));
      await expect(failure).rejects.toMatchObject({
        code: 'api-key-unavailable',
        stage: 'ticket',
        message: expect.stringContaining(`(${words})`),
        cause: thrown,
      });
    },
  );

  it('reports how long it waited for the function', async () => {
    const failure = keyOf(() => new Promise<string>(() => undefined), 20);
    await expect(failure).rejects.toMatchObject({
      code: 'api-key-unavailable',
      message: expect.stringContaining('(no answer in 20 ms)'),
    });
  });

  it.each(['', 'a b', 7 as unknown as string, undefined as unknown as string])(
    'refuses a value that cannot be sent as a header: %j',
    async (key) => {
      await expect(keyOf(() => key)).rejects.toMatchObject({
        code: 'invalid-options',
        message: expect.stringContaining(
          '`apiKey` must be a function that returns a string of visible ASCII characters)',
        ),
      });
    },
  );
});
