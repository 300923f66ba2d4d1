// Sends numbered frames, at a rate or as fast as the client processes them.
import { firstValueFrom, take, toArray } from 'rxjs';
import { marketBatches$ } from 'rx-trade-feed/testing';

/** Between two bursts, in ms. */
const TICK_MS = 4;
/** Frames that may be in flight: 1 MB, less than the limit at which the service closes with 1013. */
const MAX_IN_FLIGHT = 4_000;
/** Frames a second while no client is connected. */
const RATE_WITHOUT_CLIENT = 5_000;

/** Returns realistic texts that follow the number in a frame. They are generated before the run. */
export const tailsOfFrames = async () => {
  const texts = await firstValueFrom(marketBatches$({ rate: 100_000, batchSize: 1 }).pipe(take(4_096), toArray()));
  return texts.map((text) => text.slice(text.indexOf(',')));
};

/**
 * Creates a pump that pushes `{"batch":1,…`, 2, 3, …, never more than the acknowledgements of the client allow.
 *
 * @param push - sends a frame
 * @param rate - frames a second, or Infinity
 */
export const createPump = (push, tails, rate) => {
  let sent = 0;
  let taken = 0;
  let isConnected = false;
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
    const perMs = (isConnected ? rate : Math.min(rate, RATE_WITHOUT_CLIENT)) / 1_000;
    // A process that was blocked sends at most 100 ms of frames at once.
    due = perMs === Infinity ? Infinity : Math.min(due + (now - last) * perMs, perMs * 100);
    last = now;
    const room = isConnected ? taken + MAX_IN_FLIGHT - sent : Infinity;
    const count = Math.max(0, Math.floor(Math.min(due, room, MAX_IN_FLIGHT)));
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
    /** Sends frames without waiting for acknowledgements. */
    send,
    /** Sets whether the client is connected. */
    setConnected: (value) => {
      isConnected = value;
      taken = sent;
      // Frames of the time without a connection aren't sent later.
      due = 0;
      last = performance.now();
    },
    taken: (number) => {
      taken = Math.max(taken, number);
      if (isConnected && !isStopped) tick();
    },
  };
};
