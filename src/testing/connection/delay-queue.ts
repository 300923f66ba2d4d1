import type { SchedulerLike, Subscription } from 'rxjs';

/** Delays frames by a fixed time, in order, with one timer. */
export interface DelayQueue {
  push(frame: Buffer): void;
  /** Releases all waiting frames at once. */
  flush(): void;
  /** Drops all waiting frames, and stops the timer. */
  clear(): void;
}

interface DelayedFrame {
  readonly frame: Buffer;
  readonly due: number;
}

/**
 * Creates the queue of one connection on the Free plan (contract, section 6, rule 3).
 *
 * @param delayMs - the delay of each frame
 * @param release - called with each frame when it is due, in the order of `push`
 */
export const createDelayQueue = (
  delayMs: number,
  scheduler: SchedulerLike,
  release: (frame: Buffer) => void,
): DelayQueue => {
  let waiting: DelayedFrame[] = [];
  let head = 0;
  let timer: Subscription | undefined;

  const clear = (): void => {
    waiting = [];
    head = 0;
    timer?.unsubscribe();
    timer = undefined;
  };

  const releaseUntil = (now: number): void => {
    for (let next = waiting[head]; next !== undefined && next.due <= now; next = waiting[head]) {
      head += 1;
      release(next.frame);
    }
  };

  const arm = (dueIn: number): void => {
    timer = scheduler.schedule(() => {
      timer = undefined;
      const now = scheduler.now();
      releaseUntil(now);
      // Removes released frames only when they are half of the array, so that the cost per frame is constant.
      if (head * 2 >= waiting.length) {
        waiting = waiting.slice(head);
        head = 0;
      }
      const next = waiting[head];
      // Rounded up: timers cut off fractions of a millisecond, and a frame must not be released early.
      if (next) arm(Math.ceil(next.due - now));
    }, dueIn);
  };

  return {
    push: (frame) => {
      waiting.push({ frame, due: scheduler.now() + delayMs });
      if (timer === undefined) arm(delayMs);
    },
    flush: () => {
      releaseUntil(Infinity);
      clear();
    },
    clear,
  };
};
