// Numbered frames, at a rate or as fast as the client takes them.
import { firstValueFrom, take, toArray } from 'rxjs';
import { marketBatches$ } from 'rx-trade-feed/testing';

/** Between two bursts, in ms. */
const TICK_MS = 4;
/** Frames that may be on their way: 1 MB, less than makes a client too slow. */
const ON_THEIR_WAY = 4_000;
/** What is sent a second while nobody is there to take it. */
const UNSEEN_RATE = 5_000;

/** What follows the number of a frame: plausible, and made before the run. */
export const tailsOfFrames = async () => {
  const made = await firstValueFrom(marketBatches$({ rate: 100_000, batchSize: 1 }).pipe(take(4_096), toArray()));
  return made.map((text) => text.slice(text.indexOf(',')));
};

/**
 * Makes a pump: it pushes `{"batch":1,…`, 2, 3, …, never more than the client's acknowledgements allow.
 *
 * @param push - sends a frame
 * @param rate - frames a second, or Infinity
 */
export const makePump = (push, tails, rate) => {
  let sent = 0;
  let taken = 0;
  let isSeen = false;
  let isStopped = false;
  let timer;
  let last = performance.now();
  let due = 0;

  const send = (count) => {
    for (let n = 0; n < count; n += 1) {
      sent += 1;
      push(`{"batch":${sent}${tails[sent % tails.length]}`);
    }
  };
  const tick = () => {
    const now = performance.now();
    const perMs = (isSeen ? rate : Math.min(rate, UNSEEN_RATE)) / 1_000;
    // What a held-up process makes up for is bounded, or it would come as one flood.
    due = perMs === Infinity ? Infinity : Math.min(due + (now - last) * perMs, perMs * 100);
    last = now;
    const room = isSeen ? taken + ON_THEIR_WAY - sent : Infinity;
    const count = Math.max(0, Math.floor(Math.min(due, room, ON_THEIR_WAY)));
    if (Number.isFinite(due)) due -= count;
    send(count);
  };
  return {
    get sent() {
      return sent;
    },
    start: () => (timer ??= setInterval(tick, TICK_MS)),
    stop: () => {
      clearInterval(timer);
      isStopped = true;
    },
    /** Sends some whatever was taken. */
    send,
    /** Whether the client whose numbers count is connected. */
    seen: (now) => {
      isSeen = now;
      taken = sent;
      // Nobody asked for what the rate would have given meanwhile.
      due = 0;
      last = performance.now();
    },
    taken: (number) => {
      taken = Math.max(taken, number);
      if (isSeen && !isStopped) tick();
    },
  };
};
