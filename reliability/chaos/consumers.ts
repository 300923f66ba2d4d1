import { moments, watch, type Watched } from '../../test/model/watched.js';
import { pick, type Random } from './moods.js';

/** What the feeds of one world are subscribed with. */
export interface Where {
  readonly baseUrl: string;
  readonly ca: string | undefined;
}

/** Subscribes with options as they come: short deadlines, any policy, sometimes in a worker or with connections that stand by. */
export const subscribeSomehow = (random: Random, id: number, { baseUrl, ca }: Where): Watched => {
  const receiveIn = random() < 0.15 ? 'worker' : 'main';
  return watch(
    id,
    {
      ...{ baseUrl, receiveIn, standby: random() < 0.3, maxFrameBytes: 200_000 },
      ...(ca === undefined ? {} : { tls: { ca } }),
      ticketTimeoutMs: 700,
      handshakeTimeoutMs: 700,
      idleTimeoutMs: pick(random, [300, 800]),
      backoff: {
        initialDelayMs: pick(random, [5, 20, 50]),
        maxDelayMs: 200,
        stableAfterMs: pick(random, [1, 100]),
        jitter: pick(random, ['full', 'full', 'equal', 'none']),
      },
    },
    // A timer of Node may be a millisecond early by its own clock, and the clock is read later than the wait began.
    2,
  );
};

/** Has a whim now and then: to leave, to throw, to block. */
export const haveWhim = (random: Random, watched: Watched): void => {
  const kind = random();
  const does =
    kind < 0.6 ? 'block' : kind < 0.8 ? 'throw in next' : kind < 0.9 ? 'unsubscribe' : 'throw in an operator';
  watched.reaction = { on: pick(random, moments), does };
};
