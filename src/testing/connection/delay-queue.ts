import type { SchedulerLike, Subscription } from 'rxjs';

/** Holds frames back by a fixed time, in order, with one timer. */
export interface DelayQueue {
  push(frame: Buffer): void;
  /** Releases all that wait, at once. */
  flush(): void;
  /** Drops all that wait, and the timer. */
  clear(): void;
}

interface Held {
  readonly frame: Buffer;
  readonly due: number;
}

/**
 * Makes the queue of one connection on the Free plan (contract, section 6, rule 3).
 *
 * @param delayMs - how long each frame is held
 * @param release - called with each frame when it is due, in the order of `push`
 */
export const createDelayQueue = (
  delayMs: number,
  scheduler: SchedulerLike,
  release: (frame: Buffer) => void,
): DelayQueue => {
  let held: Held[] = [];
  let head = 0;
  let timer: Subscription | undefined;

  const clear = (): void => {
    held = [];
    head = 0;
    timer?.unsubscribe();
    timer = undefined;
  };

  const releaseUntil = (now: number): void => {
    for (let next = held[head]; next !== undefined && next.due <= now; next = held[head]) {
      head += 1;
      release(next.frame);
    }
  };

  const arm = (dueIn: number): void => {
    timer = scheduler.schedule(() => {
      timer = undefined;
      const now = scheduler.now();
      releaseUntil(now);
      // Cut off what has left only when it is half of the queue: the cost of a frame stays constant.
      if (head * 2 >= held.length) {
        held = held.slice(head);
        head = 0;
      }
      const next = held[head];
      // Rounded up: a frame must not leave early by the fraction of a millisecond that a timer cuts off.
      if (next) arm(Math.ceil(next.due - now));
    }, dueIn);
  };

  return {
    push: (frame) => {
      held.push({ frame, due: scheduler.now() + delayMs });
      if (timer === undefined) arm(delayMs);
    },
    flush: () => {
      releaseUntil(Infinity);
      clear();
    },
    clear,
  };
};
