import { type Observable, Subject, takeUntil } from 'rxjs';
import { BoundedQueue, type Bounds, reportUnhandled } from './bounded-queue.js';
import type { SourceError } from '../items/item.js';

export interface Taker<T> {
  /** Whether the consumer has requested a value and hasn't received it yet. */
  readonly wants: boolean;
  /** Whether an error overtakes the waiting values. By default, they come first. */
  readonly failsAtOnce?: boolean;
  next(value: T): void;
  /** Called once, at the first request after the last value, with the error of the source, the bounds or `onDrop`. */
  end(failure: SourceError | undefined): void;
}

/** Queues values, within bounds, until the consumer requests them. They come before the end of the source. */
export class BoundedReader<T> {
  readonly #source: Observable<T>;
  readonly #taker: Taker<T>;
  readonly #queue: BoundedQueue<T>;
  readonly #stop = new Subject<void>();
  #state: 'new' | 'reading' | 'read' | 'ended' = 'new';
  #failure: SourceError | undefined;
  #isPassing = false;

  constructor(source: Observable<T>, bounds: Bounds<T>, taker: Taker<T>) {
    this.#source = source;
    this.#taker = taker;
    this.#queue = new BoundedQueue(bounds);
  }

  /** Passes waiting values to the consumer while it wants more. The first call subscribes. */
  pull(): void {
    if (this.#state === 'new') this.#read();
    this.#passWaiting();
    const mustFail = this.#failure !== undefined && this.#taker.failsAtOnce === true;
    if (this.#state === 'read' && (mustFail || (this.#taker.wants && !this.#isPassing))) {
      this.#state = 'ended';
      this.#taker.end(this.#failure);
    }
  }

  /** Unsubscribes at once and drops all waiting values. The consumer receives nothing more. */
  cancel(): void {
    // Stryker disable next-line StringLiteral: no check tells this last state from another one that is not `reading`.
    this.#state = 'ended';
    this.#stop.next();
    this.#queue.end();
  }

  #read(): void {
    this.#state = 'reading';
    // `takeUntil` also stops a source that emits synchronously during `subscribe`.
    this.#source.pipe(takeUntil(this.#stop)).subscribe({
      next: (value) => this.#accept(value),
      error: (error: unknown) => this.#finish({ error }),
      complete: () => this.#finish(undefined),
    });
  }

  #accept(value: T): void {
    if (this.#state !== 'reading') return;
    if (this.#isDirect()) {
      this.#taker.next(value);
      // If the source emitted during `next`, before the consumer requested another value, its values are in the queue.
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

  // If the consumer calls `pull` during `next`, the outer loop passes the next value, without recursion.
  #passWaiting(): void {
    if (this.#isPassing) return;
    this.#isPassing = true;
    while (this.#queue.size > 0 && this.#taker.wants) this.#taker.next(this.#queue.take());
    this.#isPassing = false;
    try {
      this.#queue.settle();
    } catch (error) {
      this.#fail(error);
    }
  }

  #finish(failure: SourceError | undefined): void {
    if (this.#state !== 'reading') return;
    this.#state = 'read';
    this.#failure = failure;
    this.pull();
  }

  #fail(error: unknown): void {
    if (this.#state === 'reading') {
      this.#finish({ error });
      this.#stop.next();
    } else if (this.#state === 'read' && this.#failure === undefined) this.#failure = { error };
    else reportUnhandled(error);
  }
}
