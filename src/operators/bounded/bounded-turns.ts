import { Observable, Subject, type Subscriber, takeUntil } from 'rxjs';
import { BoundedQueue } from './bounded-queue.js';
import type { Bounds } from './bounds.js';

/** Lets the values of one subscription through a few at a time; the others wait in a bounded queue. */
export class BoundedTurns<T> {
  /** The values whose turn has come. Completes when the last turn of the source has begun; errors at once with the source. */
  readonly values$: Observable<T>;
  readonly #concurrency: number;
  readonly #queue: BoundedQueue<T>;
  #values: Subscriber<T> | undefined;
  #active = 0;
  #isSourceDone = false;
  #isGivingTurns = false;

  constructor(source: Observable<T>, concurrency: number, bounds: Bounds<T>) {
    this.#concurrency = concurrency;
    this.#queue = new BoundedQueue(bounds);
    this.values$ = new Observable((values) => {
      const stop = new Subject<void>();
      this.#values = values;
      // Before anything is subscribed to: what is torn down later finds the queue ended.
      values.add(() => {
        this.end();
        stop.next();
      });
      // `takeUntil` also ends a source that emits while it is being subscribed to, when there is no subscription yet.
      source.pipe(takeUntil(stop)).subscribe({
        next: this.#accept,
        error: (error: unknown) => {
          values.error(error);
        },
        complete: () => {
          this.#isSourceDone = true;
          this.#giveTurns();
        },
      });
    });
  }

  /** Ends a turn. */
  readonly done = (): void => {
    this.#active -= 1;
    this.#giveTurns();
  };

  /** Drops what waits, and tells of every drop. */
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

  // One loop, however many turns end within their own beginning.
  #giveTurns(): void {
    if (this.#isGivingTurns || this.#queue.hasEnded) return;
    this.#isGivingTurns = true;
    while (this.#active < this.#concurrency && this.#queue.size > 0) this.#begin(this.#queue.take());
    this.#isGivingTurns = false;
    try {
      this.#queue.settle();
    } catch (error) {
      this.#values?.error(error);
    }
    if (this.#isSourceDone && this.#queue.size === 0) this.#values?.complete();
  }
}
