// What wakes a reader at the end of a log: a call in the same process, and otherwise a change in the folder, or 100 ms.
import { type FSWatcher, watch } from 'node:fs';
import { resolve } from 'node:path';

const listeners = new Map<string, Set<() => void>>();

/** Returns a function that wakes the readers of a folder in this process. */
export const ringerOf = (folder: string): (() => void) => {
  const key = resolve(folder);
  return () => {
    for (const wake of listeners.get(key) ?? []) wake();
  };
};

const pollMs = 100;

/** A ring after `listen` is kept until the next `heard`. */
export class Bell {
  readonly #folder: string;
  #rang = false;
  #wake: (() => void) | undefined;
  #watcher: FSWatcher | undefined;
  readonly #after: (ms: number, call: () => void) => () => void;
  readonly #isWatched: boolean;

  constructor(folder: string, after: (ms: number, call: () => void) => () => void = afterMs, isWatched = true) {
    this.#folder = resolve(folder);
    this.#after = after;
    this.#isWatched = isWatched;
    const all = listeners.get(this.#folder) ?? new Set();
    listeners.set(this.#folder, all.add(this.#ring));
  }

  readonly #ring = (): void => {
    this.#rang = true;
    this.#wake?.();
  };

  /** Forgets the rings until now. Call it before the read that finds nothing. */
  listen(): void {
    this.#rang = false;
    if (this.#isWatched) this.#watcher ??= this.#watch();
  }

  /** Resolves with the next ring since `listen`, and after 100 ms at the latest. */
  heard(): Promise<void> {
    if (this.#rang) return Promise.resolve();
    return new Promise((done) => {
      const cancel = this.#after(pollMs, done);
      this.#wake = () => {
        this.#wake = undefined;
        cancel();
        done();
      };
    });
  }

  close(): void {
    const all = listeners.get(this.#folder);
    all?.delete(this.#ring);
    if (all?.size === 0) listeners.delete(this.#folder);
    this.#watcher?.close();
    this.#wake?.();
  }

  #watch(): FSWatcher | undefined {
    try {
      // Where watching fails, on network disks and before the folder exists, the poll remains.
      return watch(this.#folder, { persistent: false }, this.#ring).on('error', () => undefined);
    } catch {
      // The next `listen` tries again; until then a reader is at most 100 ms late.
      return undefined;
    }
  }
}

const afterMs = (ms: number, call: () => void): (() => void) => {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
};
