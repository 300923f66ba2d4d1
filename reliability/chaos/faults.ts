import { closes, handshakeRefusals, ticketRefusals } from '../../test/model/expected.js';
import { moments, watch, type Watched } from '../../test/model/watched.js';
import type { HeldHandshake, HeldTicket, Stream } from '../../test/support/held-service.js';
import { pick } from '../../test/support/faults.js';
import { wsFrame } from '../../test/support/wire.js';

/** Returns a number from 0 to below 1. */
export type Random = () => number;

/** What decides how the service behaves: without faults during the recovery, at random otherwise. */
export interface FaultSource {
  readonly random: Random;
  /** Whether the recovery has begun. */
  readonly isRecovery: () => boolean;
  /** Runs an action later, unless the episode ends first. */
  readonly later: (ms: number, action: () => void) => void;
  /** Records the failure code that this answer or close must cause. */
  readonly expectCode: (subscription: number, code: string) => void;
}

const brokenFrames = [
  wsFrame(3, 'reserved'),
  Buffer.from([0xc1, 0]),
  wsFrame(1, Buffer.from([0xff])),
  wsFrame(1, Buffer.alloc(200_001)),
];
const invalidTickets = ['{}', 'null', '<html>', '{"ticket":"x"}', ''];
const garbage = ['SMTP ready\r\n\r\n', 'HTTP/9.9 xyz\r\n\r\n', ''];

// One refusal in five may stop a feed. With more, no feed would be left.
const refusal = <T extends readonly [unknown, unknown, { readonly verdict: string }]>(
  random: Random,
  all: readonly T[],
): T => {
  const mayStop = random() < 0.2;
  return pick(
    random,
    all.filter(([, , { verdict }]) => mayStop || verdict !== 'stop'),
  );
};

/** The tables have a Retry-After of minutes. Here it is one second, or absent. */
const retryAfter = (value: string | undefined) => (value === undefined ? {} : { 'retry-after': '1' });

/** Answers a ticket request, at once or late, mostly with a ticket. */
export const answerTicket = ({ random, isRecovery, later, expectCode }: FaultSource, held: HeldTicket): void => {
  if (isRecovery() || random() < 0.8)
    return later(random() < 0.7 ? 0 : random() * 120, () =>
      held.issue(isRecovery() ? 60_000 : pick(random, [60_000, 60_000, 60_000, 1_000, 0])),
    );
  const kind = random();
  // No answer: the deadline of the client ends the request.
  if (kind < 0.15) return;
  if (kind < 0.25) return held.reset();
  if (kind < 0.35) return held.answerRaw(pick(random, garbage));
  if (kind < 0.37) {
    expectCode(held.subscription, 'invalid-ticket');
    return held.refuse(200, {}, pick(random, invalidTickets));
  }
  const [status, after, { code }] = refusal(random, ticketRefusals);
  expectCode(held.subscription, code);
  held.refuse(status, retryAfter(after));
};

/** Answers a handshake, at once or late, mostly with 101 and a first frame. */
export const answerHandshake = ({ random, isRecovery, later, expectCode }: FaultSource, held: HeldHandshake): void => {
  if (isRecovery() || random() < 0.8)
    return later(random() < 0.7 ? 0 : random() * 120, () => held.accept(1 + Math.floor(random() * 4)));
  const kind = random();
  if (kind < 0.15) return;
  if (kind < 0.3) return held.reset();
  if (kind < 0.4) return held.answerRaw(pick(random, garbage));
  if (kind < 0.42) {
    expectCode(held.subscription, 'subprotocol-mismatch');
    return held.accept(0, pick(random, ['', 'mmp.trade-batch.v0']));
  }
  const [status, after, { code }] = refusal(random, handshakeRefusals);
  expectCode(held.subscription, code);
  held.refuse(status, retryAfter(after));
};

/** Sends bursts of frames of random size until a fault ends the stream. */
export const stream = (source: FaultSource, open: Stream): void => {
  const { random, isRecovery, later, expectCode } = source;
  let isMuted = false;
  const next = (): void => {
    if (open.isClosed || open.duplex.destroyed || !open.duplex.writable) return;
    const kind = random();
    if (isRecovery() || kind < 0.9) {
      if (!isMuted)
        open.push(1 + Math.floor(random() ** 4 * 60), random() < 0.03 ? 90_000 : Math.floor(random() * 2_000));
      return later(isRecovery() ? 100 : random() ** 2 * 80, next);
    }
    if (kind < 0.95) {
      const [code, reason, expected] = refusal(random, closes);
      expectCode(open.subscription, expected.code);
      return open.close(code, reason, Math.floor(random() * 20));
    }
    if (kind < 0.96) return open.breakFraming(pick(random, brokenFrames));
    if (kind < 0.97) return open.reset();
    if (kind < 0.98) return open.end();
    if (kind < 0.985) {
      isMuted = true;
      return open.mute();
    }
    later(random() * 400, next);
  };
  next();
};

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
