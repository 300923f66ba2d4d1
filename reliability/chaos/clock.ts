/** The timers of one episode. `stop` clears all of them. */
export interface Clock {
  readonly later: (ms: number, action: () => void) => void;
  readonly wait: (ms: number) => Promise<void>;
  /** Cancels every action that `later` has scheduled. */
  readonly stop: () => void;
}

/** Creates the clock of an episode. */
export const createClock = (): Clock => {
  const timers = new Set<NodeJS.Timeout>();
  return {
    later: (ms, action) => {
      if (ms === 0) return action();
      const timer = setTimeout(() => {
        timers.delete(timer);
        action();
      }, ms);
      timers.add(timer);
    },
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    stop: () => {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
};
