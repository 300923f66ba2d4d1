import { Observable, type SchedulerLike } from 'rxjs';
import type { AsyncContext } from '../operators/items/async-context.js';
import type { Report } from './relay-reports.js';
import type { Turns } from './turns.js';

/** What all clients of a relay share. */
export interface RelayHub {
  readonly scheduler: SchedulerLike;
  /** The context of the work that belongs to no client. */
  readonly home: AsyncContext | undefined;
  readonly heartbeats$: Observable<unknown>;
  readonly watermarks$: Observable<unknown>;
  /** Emits per subscriber once its stream has reached `maxAgeMs`. */
  readonly tooOld$: Observable<unknown>;
  readonly report: (event: Report) => void;
  readonly turns: Turns;
  readonly replays: ReplaySlots;
  /** Counts the clients that have joined. */
  joined: number;
}

/** Lets so many replays run at once. The others wait, and the newest goes first: an old one's page may have gone. */
export class ReplaySlots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor({ maxReplays }: { readonly maxReplays: number }) {
    this.#free = maxReplays;
  }

  get areAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Subscribes to a source when there's room. */
  during<T>(source: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const start = (): void => {
        this.#free -= 1;
        this.#waiting.delete(start);
        subscriber.add(() => this.#release());
        subscriber.add(source.subscribe(subscriber));
      };
      if (this.#free > 0) return start();
      this.#waiting.add(start);
      subscriber.add(() => this.#waiting.delete(start));
    });
  }

  #release(): void {
    this.#free += 1;
    [...this.#waiting].at(-1)?.();
  }
}
