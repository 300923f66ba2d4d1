import type { Time } from '../../simulation/world.js';

/** A process of the simulation: its clocks, and what runs its timers. Times in ms. */
export interface Process {
  readonly wall: number;
  readonly monotonic: number;
  /** Runs an action later. Returns what cancels it before it's due. */
  readonly later: (delayMs: number, action: () => void) => () => void;
}

let current: Process | undefined;
let depth = 0;
/** Whether promises may wait that belong to the process which ran last. */
let hasRun = false;
const nextTurn = setImmediate;

/** Runs code in a process. What its promises do belongs to it as well, until the next call. */
export const runIn = <T>(process: Process, run: () => T): T => {
  const outer = current;
  [current, hasRun] = [process, true];
  depth += 1;
  try {
    return run();
  } finally {
    depth -= 1;
    if (depth > 0) current = outer;
  }
};

/** Passes time up to an end. Before the next call, all promises settle. */
export const passSlowlyTo = async (time: Time, end: number): Promise<void> => {
  while (time.passNext(end)) {
    // Immediates run after all promises.
    if (hasRun) await new Promise(nextTurn);
    [current, hasRun] = [undefined, false];
  }
};

/** A timer of a process. One that stood still runs it once when it goes on. */
class Timer {
  readonly #start: () => () => void;
  #cancel: () => void;

  constructor(run: () => void, delayMs: number, isRepeated: boolean) {
    const process = current;
    if (process === undefined) throw new Error('There is no process that could have a timer.');
    this.#start = () => {
      let isCleared = false;
      const cancel = process.later(delayMs, () => {
        if (isCleared) return;
        if (isRepeated) this.refresh();
        run();
      });
      return () => {
        isCleared = true;
        cancel();
      };
    };
    this.#cancel = this.#start();
  }

  refresh(): void {
    this.clear();
    this.#cancel = this.#start();
  }

  clear(): void {
    this.#cancel();
  }
}

const clear = (timer: unknown): void => {
  if (timer instanceof Timer) timer.clear();
};

/** Replaces the clocks and timers of all code by those of the process that runs. Returns what restores them. */
export const useProcesses = (time: Time): (() => void) => {
  const scope = globalThis as unknown as Record<string, unknown>;
  const replaced: Record<string, unknown> = {
    setTimeout: (run: () => void, delayMs: number) => new Timer(run, delayMs, false),
    setInterval: (run: () => void, delayMs: number) => new Timer(run, delayMs, true),
    setImmediate: (run: () => void) => new Timer(run, 0, false),
    ...{ clearTimeout: clear, clearInterval: clear },
  };
  const before = Object.fromEntries(Object.keys(replaced).map((name) => [name, scope[name]]));
  const [wallNow, monotonicNow, { stackTraceLimit }] = [Date.now, performance.now, Error];
  Object.assign(scope, replaced);
  Date.now = () => current?.wall ?? time.clock.now();
  performance.now = () => current?.monotonic ?? time.now();
  // A run creates thousands of failures, and formatting their stacks would take most of its time.
  Error.stackTraceLimit = 0;
  return () => {
    Object.assign(scope, before);
    [Date.now, performance.now, Error.stackTraceLimit] = [wallNow, monotonicNow, stackTraceLimit];
    current = undefined;
  };
};
