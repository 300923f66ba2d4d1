import { type SchedulerLike, VirtualTimeScheduler } from 'rxjs';

const maxCalls = 1_000_000;

/** Virtual time in ms: a scheduler for RxJS and a queue of calls, in which time passes only with `pass` and `passTo`. */
export class Time extends VirtualTimeScheduler {
  readonly begin: number;
  /** The same time in whole ms, as a clock tells it. */
  readonly clock: SchedulerLike = {
    now: () => Math.floor(this.frame),
    schedule: (...args: Parameters<SchedulerLike['schedule']>) => this.schedule(...args),
  };
  #calls = 0;

  constructor(begin = 0) {
    super(undefined, begin);
    this.frame = this.begin = begin;
  }

  /** How much time has passed. */
  get elapsed(): number {
    return this.frame - this.begin;
  }

  /** Calls a function later. Returns what cancels it. */
  after(ms: number, call: () => void): () => void {
    const action = this.schedule(
      () => {
        this.#calls += 1;
        if (this.#calls > maxCalls) throw new Error(`More than ${maxCalls} calls: a loop without a wait.`);
        call();
      },
      Math.max(0, ms),
    );
    return () => action.unsubscribe();
  }

  every(ms: number, call: () => void): () => void {
    let cancel = (): void => undefined;
    const next = (): void => {
      cancel = this.after(ms, () => {
        next();
        call();
      });
    };
    next();
    return () => cancel();
  }

  wait(ms: number): Promise<void> {
    return new Promise((done) => {
      this.after(ms, done);
    });
  }

  /** Makes the calls up to a time, inclusive. */
  passTo(time: number): void {
    this.maxFrames = time;
    this.flush();
    this.frame = time;
  }

  pass(ms: number): void {
    this.passTo(this.frame + ms);
  }

  /** Passes time for code with promises: they settle before each call. */
  async passSlowly(ms: number): Promise<void> {
    const end = this.frame + ms;
    for (;;) {
      await settled();
      const next = this.actions[0];
      if (next === undefined || next.delay > end) break;
      this.actions.shift();
      this.frame = next.delay;
      const error = next.execute(next.state, next.delay) as Error | undefined;
      if (error !== undefined) throw error;
    }
    this.frame = end;
  }

  /** Passes time until something is true, up to a limit. Returns whether it is. */
  async passUntil(isTrue: () => boolean, limitMs: number): Promise<boolean> {
    for (const end = this.frame + limitMs; !isTrue() && this.frame < end;) await this.passSlowly(100);
    return isTrue();
  }
}

// More than the longest chain of promises in the sources.
const settled = async (): Promise<void> => {
  for (let n = 0; n < 10; n += 1) await Promise.resolve();
};

/** Runs with virtual time as the clock of all code. */
export const inWorld = <T>(time: Time, run: () => T, random = Math.random): T => {
  const before = [Date.now, Math.random, Error.stackTraceLimit] as const;
  [Date.now, Math.random] = [() => time.clock.now(), random];
  // A run creates thousands of failures, and formatting their stacks would take most of its time.
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    [Date.now, Math.random, Error.stackTraceLimit] = before;
  }
};

/** Creates lines of messages: each arrives after its delay, and after all that were sent before it on the same line. */
export const createLines = (time: Time) => {
  const arrivals = new Map<unknown, number>();
  return (line: unknown, delayMs: number, arrive: () => void): (() => void) => {
    const at = Math.max(time.now() + delayMs, (arrivals.get(line) ?? 0) + 0.001);
    arrivals.set(line, at);
    return time.after(at - time.now(), arrive);
  };
};
