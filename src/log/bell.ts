// What wakes a reader at the end of a log: a call in the same process, and otherwise a change in the folder, or 100 ms.
import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

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
  /** It watches the folder, or as long as that doesn't exist, the one in which it will be. */
  #watcher: FSWatcher | undefined;
  #watched: string | undefined;
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
    if (this.#isWatched && this.#watched !== this.#folder) this.#watch();
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
    this.#unwatch();
    this.#wake?.();
  }

  /** Watches the folder, or the nearest one above it that exists. */
  #watch(): void {
    const above = this.#watched;
    let name: string | undefined;
    for (let path = this.#folder; path !== above; [path, name] = [dirname(path), basename(path)])
      try {
        const watcher = watch(path, { persistent: false }, (event, changed) =>
          this.#changed(event, changed, path, name),
        );
        this.#unwatch();
        // Where watching fails later, the poll remains.
        this.#watcher = watcher.on('error', () => this.#unwatch());
        this.#watched = path;
        // It may have been created meanwhile.
        if (path !== this.#folder) this.#watch();
        return;
      } catch {
        // Network disks can't be watched, and the root is the last one: until then a reader is at most 100 ms late.
        if (path === dirname(path)) return;
      }
  }

  /** @param name - what to wait for in a folder above; a busy one would ring all the time */
  #changed(event: string, changed: string | null, path: string, name: string | undefined): void {
    // It was removed or renamed itself. The path may lead to another one soon.
    if (event === 'rename' && changed === basename(path)) this.#unwatch();
    else if (name !== undefined && changed !== null && changed !== name) return;
    this.#ring();
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = this.#watched = undefined;
  }
}

const afterMs = (ms: number, call: () => void): (() => void) => {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
};
