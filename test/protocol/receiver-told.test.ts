import { expect, it } from '@jest/globals';
import { receiverTold } from '../../src/protocol/receiver-told.js';

it('is why frames are missing, and why there is no worker, in words that name what can be done', () => {
  expect(receiverTold).toEqual({
    tooSlow: {
      stage: 'stream',
      code: 'receiver-too-slow',
      verdict: 'renew',
      meaning: expect.stringMatching(/^Frames came faster .+\.$/),
      advice: expect.stringMatching(/^.+`receiveBufferBytes`.+\.$/),
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
