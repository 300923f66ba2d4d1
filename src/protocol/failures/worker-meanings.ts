import type { Meaning } from './meaning.js';

/** The failures of the worker that receives for the main thread: the reasons for a gap, and for a missing worker. */
export const workerMeanings: Readonly<Record<'tooSlow' | 'lost' | 'notStarted', Meaning>> = {
  tooSlow: {
    stage: 'stream',
    code: 'receiver-too-slow',
    verdict: 'renew',
    meaning: 'The main thread was slower than the feed, or was blocked until the store of the worker was full.',
    advice: 'If this happens often, do less for each frame, or raise `receiveBufferBytes`.',
  },
  lost: {
    code: 'receiver-failed',
    verdict: 'renew',
    meaning: 'The worker thread that received the feed has ended.',
    advice: 'See the cause; another worker takes over, with a fresh ticket.',
  },
  notStarted: {
    code: 'receiver-failed',
    verdict: 'stop',
    meaning: 'The worker thread that receives the feed could not be started.',
    advice: "See the cause; a bundler must include the worker's file. With `receiveIn: 'main'` there is no worker.",
  },
};
