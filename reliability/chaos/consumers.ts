import { moments, watch, type Watched } from '../../test/model/watched.js';
import { pick, type Random } from './service-faults.js';

/** The service that the feeds of one episode subscribe to. */
export interface Target {
  readonly baseUrl: string;
  readonly ca: string | undefined;
}

/** Subscribes with random options: short deadlines, any policy, sometimes in a worker or with standby connections. */
export const subscribeAtRandom = (random: Random, id: number, { baseUrl, ca }: Target): Watched => {
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
    // A Node timer may fire 1 ms early by its own clock, and the test reads the clock after the wait has begun.
    2,
  );
};

/** Makes a subscriber misbehave at its next moment of one kind: it blocks, throws or unsubscribes. */
export const misbehave = (random: Random, watched: Watched): void => {
  const kind = random();
  const does =
    kind < 0.6 ? 'block' : kind < 0.8 ? 'throw in next' : kind < 0.9 ? 'unsubscribe' : 'throw in an operator';
  watched.reaction = { on: pick(random, moments), does };
};
