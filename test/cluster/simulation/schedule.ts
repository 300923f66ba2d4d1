export type Schedule = ReturnType<typeof createSchedule>;

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

const maxCallbacks = 1_000_000;

const isBefore = (one: Entry, other: Entry): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

/** Virtual time, from 0 ms on: a queue of callbacks, ordered by time and then by insertion. */
export const createSchedule = () => {
  const heap: Entry[] = [];
  let now = 0;
  let order = 0;
  let callbacks = 0;

  const push = (entry: Entry): void => {
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  };

  const pop = (): Entry => {
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  };

  return {
    now: (): number => now,
    after: (delayMs: number, callback: () => void): void => {
      order += 1;
      push({ at: now + Math.max(0, delayMs), order, callback });
    },
    /** Runs the callbacks up to a time, inclusive. */
    runUntil: (time: number): void => {
      while (heap[0] !== undefined && heap[0].at <= time) {
        const { at, callback } = pop();
        callbacks += 1;
        if (callbacks > maxCallbacks) throw new Error(`More than ${maxCallbacks} callbacks: a loop without a wait.`);
        now = at;
        callback();
      }
      now = time;
    },
  };
};
