/** Timers of one episode, which end with it. */
export interface Clock {
  readonly later: (ms: number, act: () => void) => void;
  readonly wait: (ms: number) => Promise<void>;
  /** Forgets what was to be done later. */
  readonly stop: () => void;
}

export const clock = (): Clock => {
  const timers = new Set<NodeJS.Timeout>();
  return {
    later: (ms, act) => {
      if (ms === 0) return act();
      const timer = setTimeout(() => {
        timers.delete(timer);
        act();
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
