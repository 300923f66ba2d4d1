import { AsyncLocalStorage } from 'node:async_hooks';
import { finalize, type Observable } from 'rxjs';

const request = new AsyncLocalStorage<string>();

/** Calls a function in the async context of a request. With `none` in that of the caller, which must have none. */
export const within = <T>(name: string, act: () => T): T => (name === 'none' ? act() : request.run(name, act));

/** Notes in which requests something happens, by name. */
export class Journal {
  readonly #requests = new Map<string, Set<string>>();

  readonly note = (what: string): void => {
    this.#requests.set(what, (this.#requests.get(what) ?? new Set()).add(request.getStore() ?? 'none'));
  };

  get requests(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#requests].map(([what, names]) => [what, [...names].join()]));
  }

  /** Subscribes in a request. Resolves at the end. */
  subscribe(name: string, source: Observable<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const end = (how: string) => () => {
        this.note(`${name} ${how}`);
        resolve();
      };
      within(name, () =>
        source.pipe(finalize(() => this.note(`${name} finalized`))).subscribe({
          next: () => this.note(`${name} next`),
          error: end('error'),
          complete: end('complete'),
        }),
      );
    });
  }
}

/** What a subscriber notes in its own request if it gets values and an end. */
export const inOwn = (name: string, ...ends: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(['next', ...ends, 'finalized'].map((what) => [`${name} ${what}`, name]));
