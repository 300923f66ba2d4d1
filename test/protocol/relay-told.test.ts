import { expect, it } from '@jest/globals';
import { relayTold } from '../../src/protocol/relay-told.js';

it('is why a gap is there, why there is no feed, and why a stream ends', () => {
  expect(relayTold).toMatchObject({
    behind: { code: 'relay-behind', stage: 'stream', verdict: 'renew' },
    sourceFailed: { code: 'relay-source-failed', stage: 'stream', verdict: 'stop' },
    closing: { code: 'relay-closing', stage: 'stream', verdict: 'backoff' },
    sessionEnded: { code: 'relay-session-ended', stage: 'stream', verdict: 'renew' },
  });
});
