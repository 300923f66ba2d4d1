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

it('leaves an error that is not for want of room as it is', async () => {
  const error = new RangeError('of something else');
  await expect(lastValueFrom(sseMessages$(relayThat(error), {}, undefined))).rejects.toBe(error);
});

it('answers 503 where there is no response to put Retry-After into', async () => {
  const error = new RelayFullError('There are 2 clients.');
  const answer = lastValueFrom(sseMessages$(relayThat(error), {}, undefined));
  await expect(answer).rejects.toMatchObject({ status: 503, message: 'There are 2 clients.' });
});
