import { expect, it } from '@jest/globals';
import { EMPTY, lastValueFrom, throwError } from 'rxjs';
import { sseMessages$ } from '../../src/nestjs/sse-messages.js';
import { type Relay, RelayFullError } from '../../src/relay/index.js';

const relayWithError = (error: Error): Relay => ({
  messages$: () => throwError(() => error),
  events$: EMPTY,
  status: () => {
    throw new Error('not called');
  },
  restart: () => undefined,
  hold: () => EMPTY.subscribe(),
  disconnect: () => 0,
  close: () => undefined,
});

it.each([new RangeError('of something else'), 'of something else'])(
  'hides the text of any other error from the client, and keeps its stack for the log: %p',
  async (cause) => {
    const error: unknown = await lastValueFrom(sseMessages$(relayWithError(cause as Error), {}, undefined)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ message: 'The feed failed. See the log of the server.', cause });
    expect((error as Error).stack).toContain('of something else');
  },
);

it('answers 503 without a response to set Retry-After on', async () => {
  const error = new RelayFullError('There are 2 clients.');
  const answer = lastValueFrom(sseMessages$(relayWithError(error), {}, undefined));
  await expect(answer).rejects.toMatchObject({ status: 503, message: 'The relay has no room. Retry later.' });
});
