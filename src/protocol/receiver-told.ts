import type { Meaning } from './meaning.js';

/** What the main thread tells of a worker that receives for it: why a gap is there, and why there is no worker. */
export const receiverTold: Readonly<Record<'tooSlow' | 'lost' | 'notStarted', Meaning>> = {
  tooSlow: {
    stage: 'stream',
    code: 'receiver-too-slow',
    verdict: 'renew',
    meaning:
      'Frames came faster than the main thread took them, or it was blocked for longer than the store of the worker lasts.',
    advice: 'Do less for each frame, or let more be held (`receiveBufferBytes`), if this happens often.',
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
    advice: "See the cause; a bundler must take the worker's file along. With `receiveIn: 'main'` there is none.",
  },
};
