import { expect, it } from '@jest/globals';
import { clusterMeanings } from '../../../src/protocol/failures/cluster-meanings.js';

it('says why frames of a cluster may be missing, and what to do', () => {
  expect(clusterMeanings).toEqual({
    behind: {
      stage: 'stream',
      code: 'cluster-behind',
      verdict: 'renew',
      meaning: expect.stringMatching(/^Messages of the owner did not arrive.+\.$/),
      advice: expect.stringMatching(/^.+ slow consumers\.$/),
    },
    away: {
      stage: 'stream',
      code: 'cluster-away',
      verdict: 'renew',
      meaning: expect.stringMatching(/^This replica lost its connection to the engine.+\.$/),
      advice: expect.stringMatching(/^Nothing to do.+ check the engine\.$/),
    },
    ownerChanged: {
      stage: 'stream',
      code: 'owner-changed',
      verdict: 'renew',
      meaning: expect.stringMatching(/^Another replica owns .+\.$/),
      advice: expect.stringMatching(/^Nothing to do.+\.$/),
    },
  });
});
