import { expect, it } from '@jest/globals';
import { refusalIn } from '../../src/log/refusal.js';

it.each([
  'maximum messages exceeded',
  'maximum number of streams reached',
  'resource limits exceeded for account',
  'message size exceeds maximum allowed',
  'subjects overlap with an existing stream',
  'stream not found',
  'jetstream not enabled for account',
  'closed connection',
  'Connection is closed.',
  "OOM command not allowed when used memory > 'maxmemory'.",
  'NOPERM this user has no permissions',
])('what a server says, "%s", has an advice of its own', (message) => {
  const [{ advice }, other] = [refusalIn(new Error(message)), refusalIn(new Error('?'))];
  expect(advice).not.toBe(other.advice);
  // It's the same in the words of the client.
  expect(refusalIn(Object.assign(new Error(message.toUpperCase()), { name: 'JetStreamApiError' })).advice).toBe(advice);
});
