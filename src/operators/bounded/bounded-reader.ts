import { type Observable, Subject, takeUntil } from 'rxjs';
import { BoundedQueue } from './bounded-queue.js';
import type { Bounds } from './bounds.js';
import { reportUnhandled } from './unhandled.js';
import type { Failure } from '../stream/failure.js';

/** A consumer that asks for each value. */
export interface Taker<T> {
  /** Whether it has asked for a value that it has not got. */
  readonly wants: boolean;
  next(value: T): void;
  /** Everything was taken; called once, when it wants more. `failure` holds what the source, the bounds or `onDrop` ended with. */
  end(failure: Failure | undefined): void;
}

/**
 * Subscribes to a source for a consumer that asks for each value: what it has not asked for waits in a bounded queue.
 *
 * However the source ends, what waits is handed on first.
 */
export class BoundedReader<T> {
  readonly #source: Observable<T>;
  readonly #taker: Taker<T>;
  readonly #queue: BoundedQueue<T>;
  readonly #stop = new Subject<void>();
  #state: 'new' | 'reading' | 'read' | 'ended' = 'new';
  #failure: Failure | undefined;

  constructor(source: Observable<T>, bounds: Bounds<T>, taker: Taker<T>) {
    this.#source = source;
    this.#taker = taker;
    this.#queue = new BoundedQueue(bounds);
  }

  /** Hands on what waits, as long as more is wanted. The first call subscribes. */
  pull(): void {
    if (this.#state === 'new') this.#read();
    this.#handOn();
    if (this.#state === 'read' && this.#taker.wants) {
      this.#state = 'ended';
      this.#taker.end(this.#failure);
    }
  }

  /** Unsubscribes at once, and drops what waits. The consumer is told of nothing more. */
  cancel(): void {
    this.#state = 'ended';
    this.#stop.next();
    this.#queue.end();
  }

  #read(): void {
    this.#state = 'reading';
    // `takeUntil` also ends a source that emits while it is being subscribed to, when there is no subscription yet.
    this.#source.pipe(takeUntil(this.#stop)).subscribe({
      next: (value) => {
        this.#accept(value);
      },
      error: (error: unknown) => {
        this.#finish({ error });
      },
      complete: () => {
        this.#finish(undefined);
      },
    });
  }

  #accept(value: T): void {
    if (this.#state !== 'reading') return;
    if (this.#isDirect()) {
      this.#taker.next(value);
      // What came meanwhile, when the consumer did not yet want more.
      if (this.#queue.size > 0) this.pull();
      return;
    }
    try {
      this.#queue.offer(value);
    } catch (error) {
      this.#fail(error);
    }
  }

  #isDirect(): boolean {
    return this.#taker.wants && this.#queue.size === 0;
  }

  #handOn(): void {
    while (this.#queue.size > 0 && this.#taker.wants) this.#taker.next(this.#queue.take());
    try {
      this.#queue.settle();
    } catch (error) {
      this.#fail(error);
    }
  }

  #finish(failure: Failure | undefined): void {
    if (this.#state !== 'reading') return;
    this.#state = 'read';
    this.#failure = failure;
    this.pull();
  }

  #fail(error: unknown): void {
    if (this.#state === 'reading') {
      this.#finish({ error });
      this.#stop.next();
    } else if (this.#state === 'read' && this.#failure === undefined) {
      this.#failure = { error };
    } else {
      reportUnhandled(error);
    }
  }
}
