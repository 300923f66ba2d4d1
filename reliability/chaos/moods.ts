import type { HeldHandshake, Stream } from '../../test/support/held-handshake.js';
import type { HeldTicket } from '../../test/support/held-ticket.js';
import { closes, handshakeRefusals, ticketRefusals } from '../../test/model/expected.js';
import { wsFrame } from '../../test/support/wire.js';

/** From 0 up to 1. */
export type Random = () => number;

export const pick = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

/** How a service in this world behaves: calm for a recovery, else as it comes. */
export interface Mood {
  readonly random: Random;
  readonly isCalm: () => boolean;
  /** Does something later, unless the world has ended by then. */
  readonly later: (ms: number, act: () => void) => void;
  /** Told of the code that this answer or close asks for. */
  readonly meant: (subscription: number, code: string) => void;
}

const broken = [
  wsFrame(3, 'reserved'),
  Buffer.from([0xc1, 0]),
  wsFrame(1, Buffer.from([0xff])),
  wsFrame(1, Buffer.alloc(200_001)),
];
const noTickets = ['{}', 'null', '<html>', '{"ticket":"x"}', ''];
const garbage = ['SMTP ready\r\n\r\n', 'HTTP/9.9 xyz\r\n\r\n', ''];

// One in five of what is refused may stop a feed; otherwise nobody would be left.
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

/** Retry-After of the tables may be minutes: here it is none, or a second. */
const retryAfter = (value: string | undefined) => (value === undefined ? {} : { 'retry-after': '1' });

/** Answers a ticket request: at once or late, mostly with a ticket. */
export const answerTicket = ({ random, isCalm, later, meant }: Mood, held: HeldTicket): void => {
  if (isCalm() || random() < 0.8)
    return later(random() < 0.7 ? 0 : random() * 120, () =>
      held.issue(isCalm() ? 60_000 : pick(random, [60_000, 60_000, 60_000, 1_000, 0])),
    );
  const kind = random();
  // Never, until the deadline of the client.
  if (kind < 0.15) return;
  if (kind < 0.25) return held.reset();
  if (kind < 0.35) return held.answerRaw(pick(random, garbage));
  if (kind < 0.37) {
    meant(held.subscription, 'invalid-ticket');
    return held.refuse(200, {}, pick(random, noTickets));
  }
  const [status, after, { code }] = refusal(random, ticketRefusals);
  meant(held.subscription, code);
  held.refuse(status, retryAfter(after));
};

/** Answers a handshake: at once or late, mostly with 101 and a first frame. */
export const answerHandshake = ({ random, isCalm, later, meant }: Mood, held: HeldHandshake): void => {
  if (isCalm() || random() < 0.8)
    return later(random() < 0.7 ? 0 : random() * 120, () => held.accept(1 + Math.floor(random() * 4)));
  const kind = random();
  if (kind < 0.15) return;
  if (kind < 0.3) return held.reset();
  if (kind < 0.4) return held.answerRaw(pick(random, garbage));
  if (kind < 0.42) {
    meant(held.subscription, 'subprotocol-mismatch');
    return held.accept(0, pick(random, ['', 'mmp.trade-batch.v0']));
  }
  const [status, after, { code }] = refusal(random, handshakeRefusals);
  meant(held.subscription, code);
  held.refuse(status, retryAfter(after));
};

/** Streams: frames in bursts of any size, until something ends it. */
export const stream = (mood: Mood, open: Stream): void => {
  const { random, isCalm, later, meant } = mood;
  let isMuted = false;
  const next = (): void => {
    if (open.isClosed || open.duplex.destroyed || !open.duplex.writable) return;
    const fate = random();
    if (isCalm() || fate < 0.9) {
      if (!isMuted)
        open.push(1 + Math.floor(random() ** 4 * 60), random() < 0.03 ? 90_000 : Math.floor(random() * 2_000));
      return later(isCalm() ? 100 : random() ** 2 * 80, next);
    }
    if (fate < 0.95) {
      const [code, reason, expected] = refusal(random, closes);
      meant(open.subscription, expected.code);
      return open.close(code, reason, Math.floor(random() * 20));
    }
    if (fate < 0.96) return open.breakFraming(pick(random, broken));
    if (fate < 0.97) return open.reset();
    if (fate < 0.98) return open.end();
    if (fate < 0.985) {
      isMuted = true;
      return open.mute();
    }
    later(random() * 400, next);
  };
  next();
};
