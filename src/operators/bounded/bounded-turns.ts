import { Observable, Subject, type Subscriber, takeUntil } from 'rxjs';
import { BoundedQueue } from './bounded-queue.js';
import type { Bounds } from './bounds.js';

/** Starts a limited number of one subscription's values at a time. The other values wait in a bounded queue. */
export class BoundedTurns<T> {
  /** Emits each value when its turn begins. Completes when the last turn has begun. Errors at once with the source, the bounds or `onDrop`. */
  readonly values$: Observable<T>;
  readonly #concurrency: number;
  readonly #queue: BoundedQueue<T>;
  #values: Subscriber<T> | undefined;
  #active = 0;
  #isSourceDone = false;
  #isBeginningTurns = false;

  constructor(source: Observable<T>, concurrency: number, bounds: Bounds<T>) {
    this.#concurrency = concurrency;
    this.#queue = new BoundedQueue(bounds);
    this.values$ = new Observable((values) => {
      const stop = new Subject<void>();
      this.#values = values;
      // Added before subscribing, so that the queue has ended when later teardowns run.
      values.add(() => {
        this.end();
        stop.next();
      });
      // `takeUntil` also stops a source that emits synchronously during `subscribe`, when the subscription is not yet available.
      source.pipe(takeUntil(stop)).subscribe({
        next: this.#accept,
        error: (error: unknown) => {
          values.error(error);
        },
        complete: () => {
          this.#isSourceDone = true;
          this.#beginTurns();
        },
      });
    });
  }

  /** Ends a turn. */
  readonly done = (): void => {
    this.#active -= 1;
    this.#beginTurns();
  };

  /** Drops all waiting values and reports all drops. */
  readonly end = (): void => {
    this.#queue.end();
  };

  readonly #accept = (value: T): void => {
    if (this.#queue.hasEnded) return;
    if (this.#active < this.#concurrency && this.#queue.size === 0) {
      this.#begin(value);
      return;
    }
    try {
      this.#queue.offer(value);
    } catch (error) {
      this.#values?.error(error);
    }
  };

  #begin(value: T): void {
    this.#active += 1;
    this.#values?.next(value);
  }

  // A turn may end synchronously in `#begin` and call this method again. The outer loop then begins the next turn, without recursion.
  #beginTurns(): void {
    if (this.#isBeginningTurns || this.#queue.hasEnded) return;
    this.#isBeginningTurns = true;
    while (this.#active < this.#concurrency && this.#queue.size > 0) this.#begin(this.#queue.take());
    this.#isBeginningTurns = false;
    try {
      this.#queue.settle();
    } catch (error) {
      this.#values?.error(error);
    }
    if (this.#isSourceDone && this.#queue.size === 0) this.#values?.complete();
  }
}
