import { expect, it } from '@jest/globals';
import { EMPTY, lastValueFrom, throwError } from 'rxjs';
import { sseMessages$ } from '../../src/nestjs/sse-messages.js';
import { type Relay, RelayFullError } from '../../src/relay/index.js';

const relayThat = (error: Error): Relay => ({
  messages$: () => throwError(() => error),
  events$: EMPTY,
  status: () => {
    throw new Error('not asked for');
  },
  restart: () => undefined,
  disconnect: () => 0,
  close: () => undefined,
});

it.each([new RangeError('of something else'), 'of something else'])(
  'keeps the text of an error that is not for want of room from Nest, which may send it; the log has its stack: %p',
  async (cause) => {
    const error: unknown = await lastValueFrom(sseMessages$(relayThat(cause as Error), {}, undefined)).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ message: 'The feed failed. See the log of the server.', cause });
    expect((error as Error).stack).toContain('of something else');
  },
);

it('answers 503 where there is no response to put Retry-After into', async () => {
  const error = new RelayFullError('There are 2 clients.');
  const answer = lastValueFrom(sseMessages$(relayThat(error), {}, undefined));
  await expect(answer).rejects.toMatchObject({ status: 503, message: 'The relay has no room. Come back later.' });
});
