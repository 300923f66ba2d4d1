import { expect, it } from '@jest/globals';
import { relayTold } from '../../src/protocol/relay-told.js';

it('is why a gap is there, and why there is no feed', () => {
  expect(relayTold).toMatchObject({
    behind: { code: 'relay-behind', stage: 'stream', verdict: 'renew' },
    sourceFailed: { code: 'relay-source-failed', stage: 'stream', verdict: 'stop' },
  });
});
