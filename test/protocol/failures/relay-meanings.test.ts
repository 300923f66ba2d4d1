import { expect, it } from '@jest/globals';
import { relayReports } from '../../../src/protocol/failures/relay-meanings.js';

it('has a report for a gap, for a source that failed, and for each end of a stream', () => {
  expect(relayReports).toMatchObject({
    behind: { code: 'relay-behind', stage: 'stream', verdict: 'renew' },
    sourceFailed: { code: 'relay-source-failed', stage: 'stream', verdict: 'stop' },
    closing: { code: 'relay-closing', stage: 'stream', verdict: 'backoff' },
    sessionEnded: { code: 'relay-session-ended', stage: 'stream', verdict: 'renew' },
  });
});
