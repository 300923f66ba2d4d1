import { type SchedulerLike, VirtualTimeScheduler } from 'rxjs';

const maxCalls = 1_000_000;

interface Call {
  readonly at: number;
  /** Counts what is planned. */
  readonly index: number;
  /** `undefined` once it's cancelled. */
  run: (() => void) | undefined;
}

/** What an action of RxJS has as well. */
interface Planned {
  readonly delay: number;
  readonly index: number;
}

const isBefore = (one: Omit<Call, 'run'>, other: Omit<Call, 'run'>): boolean =>
  one.at < other.at || (one.at === other.at && one.index < other.index);

/** Calls by their times: a binary heap, because the scheduler of RxJS sorts all of them for each new one. */
class CallQueue {
  readonly #calls: Call[] = [];

  get first(): Call | undefined {
    while (this.#calls[0] && this.#calls[0].run === undefined) this.shift();
    return this.#calls[0];
  }

  push(call: Call): void {
    const calls = this.#calls;
    let n = calls.push(call) - 1;
    for (let above = (n - 1) >> 1; n > 0 && isBefore(call, calls[above]!); above = (n - 1) >> 1) {
      calls[n] = calls[above]!;
      n = above;
    }
    calls[n] = call;
  }

  shift(): Call | undefined {
    const calls = this.#calls;
    const [first] = calls;
    const last = calls.pop();
    if (last === undefined || last === first) return first;
    let n = 0;
    for (;;) {
      let below = 2 * n + 1;
      if (below + 1 < calls.length && isBefore(calls[below + 1]!, calls[below]!)) below += 1;
      if (below >= calls.length || !isBefore(calls[below]!, last)) break;
      calls[n] = calls[below]!;
      n = below;
    }
    calls[n] = last;
    return first;
  }
}

/** Virtual time in ms: a scheduler for RxJS and a queue of calls, in which time passes only with `pass` and `passTo`. */
export class Time extends VirtualTimeScheduler {
  readonly begin: number;
  /** The same time in whole ms, as a clock tells it. */
  readonly clock: SchedulerLike = {
    now: () => Math.floor(this.frame),
    schedule: (...args: Parameters<SchedulerLike['schedule']>) => this.schedule(...args),
  };
  readonly #calls = new CallQueue();
  #count = 0;

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
    const planned: Call = { at: this.frame + Math.max(0, ms), index: (this.index += 1), run: call };
    this.#calls.push(planned);
    return () => {
      planned.run = undefined;
    };
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
    while (this.passNext(time));
  }

  pass(ms: number): void {
    this.passTo(this.frame + ms);
  }

  /** Passes time for code with promises: they settle before each call. */
  async passSlowly(ms: number): Promise<void> {
    const end = this.frame + ms;
    do await settled();
    while (this.passNext(end));
  }

  /** Makes the next call. Without one up to a time, it's that time, and this returns false. */
  passNext(end: number): boolean {
    const call = this.#calls.first;
    const [action] = this.actions as readonly unknown[] as readonly Planned[];
    const isCall = call && (action === undefined || isBefore(call, { at: action.delay, index: action.index }));
    const at = isCall ? call.at : (action?.delay ?? Infinity);
    if (at > end) {
      this.frame = end;
      return false;
    }
    this.frame = at;
    this.#count += 1;
    if (this.#count > maxCalls) throw new Error(`More than ${maxCalls} calls: a loop without a wait.`);
    if (isCall) this.#calls.shift()?.run?.();
    else this.#execute();
    return true;
  }

  #execute(): void {
    const action = this.actions.shift();
    const error = action?.execute(action.state, action.delay) as Error | undefined;
    if (error !== undefined) throw error;
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
