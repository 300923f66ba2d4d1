import { expect, it } from '@jest/globals';
import { workerMeanings } from '../../../src/protocol/failures/worker-meanings.js';

it('says why frames are missing or why there is no worker, and what to do', () => {
  expect(workerMeanings).toEqual({
    tooSlow: {
      stage: 'stream',
      code: 'receiver-too-slow',
      verdict: 'renew',
      meaning: expect.stringMatching(/^The main thread was slower than the feed.+\.$/),
      advice: expect.stringMatching(/^.+`receiveBufferBytes`\.$/),
    },
    lost: {
      code: 'receiver-failed',
      verdict: 'renew',
      meaning: expect.stringMatching(/^The worker thread .+ has ended\.$/),
      advice: expect.stringMatching(/^See the cause; .+ fresh ticket\.$/),
    },
    notStarted: {
      code: 'receiver-failed',
      verdict: 'stop',
      meaning: expect.stringMatching(/^The worker thread .+ could not be started\.$/),
      advice: expect.stringMatching(/^See the cause; .+ `receiveIn: 'main'` .+\.$/),
    },
  });
});
