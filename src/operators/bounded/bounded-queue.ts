import { throwError } from 'rxjs';
import { invalidOption } from '../../protocol/rules.js';
import type { Bounds } from './bounds.js';
import { DropTally } from './drop-tally.js';
import { OverflowError } from './overflow-error.js';
import { withOwnBytes } from '../own-bytes.js';
import { Ring } from './ring.js';

/**
 * Stores the values of one subscription that wait for the consumer, within bounds, and reports dropped values.
 *
 * Each step takes constant time (amortized).
 */
export class BoundedQueue<T> {
  readonly #bounds: Bounds<T>;
  readonly #values = new Ring<T>();
  // The counted sizes: the sum must stay correct if a value changes while it waits.
  readonly #sizes = new Ring<number>();
  readonly #tally: DropTally;
  #bytes = 0;
  #hasEnded = false;

  constructor(bounds: Bounds<T>) {
    this.#bounds = bounds;
    this.#tally = new DropTally(bounds.onDrop);
  }

  /** The number of waiting values. */
  get size(): number {
    return this.#values.size;
  }

  /** Whether {@link end} was called. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Adds a value at the end, and drops values beyond the bounds.
   *
   * @throws OverflowError with the policy `error`; the errors of `bytesOf` and `onDrop`. The queue and the counts are correct in each case
   */
  offer(value: T): void {
    const bytes = this.#sizeOf(value);
    if (this.#makesRoomFor(bytes)) {
      this.#values.push(withOwnBytes(value));
      this.#sizes.push(bytes);
      this.#bytes += bytes;
    } else {
      this.#dropNewest(bytes);
    }
    if (this.#tally.isOverdue) this.#tally.report('overflow');
  }

  /** Removes and returns the first value. Check `size` before, and call {@link settle} after the consumer received the value. */
  take(): T {
    this.#bytes -= this.#sizes.shift() as number;
    return this.#values.shift() as T;
  }

  /**
   * Reports drops when the queue is at most half full again. An overflow lasts until then. If it ended earlier, a queue that stays near its
   * bounds would report many overflows.
   *
   * @throws the error of `onDrop`
   */
  settle(): void {
    if (this.#tally.isOpen && this.#isHalfEmpty()) this.#tally.report('overflow');
  }

  /** Drops all waiting values and reports all drops. An error of `onDrop` becomes an unhandled error of RxJS. */
  end(): void {
    this.#hasEnded = true;
    const { size } = this;
    const bytes = this.#bytes;
    this.#values.clear();
    this.#sizes.clear();
    this.#bytes = 0;
    this.#reportSafely('overflow');
    this.#tally.count(size, bytes, this.#bounds.scheduler.now());
    this.#reportSafely('ended');
  }

  #sizeOf(value: T): number {
    try {
      const bytes = this.#bounds.bytesOf(value);
      if (Number.isSafeInteger(bytes) && bytes >= 0) return bytes;
      throw invalidOption('bytesOf', 'a function that returns a whole number of bytes, 0 or more', bytes);
    } catch (error) {
      this.#count(0);
      throw error;
    }
  }

  #makesRoomFor(bytes: number): boolean {
    if (bytes <= this.#bounds.capacityBytes && this.#bounds.overflow === 'drop-oldest') {
      while (!this.#hasRoomFor(bytes)) this.#dropOldest();
    }
    return this.#hasRoomFor(bytes);
  }

  #hasRoomFor(bytes: number): boolean {
    return this.size < this.#bounds.capacity && this.#bytes + bytes <= this.#bounds.capacityBytes;
  }

  #isHalfEmpty(): boolean {
    return this.size * 2 <= this.#bounds.capacity && this.#bytes * 2 <= this.#bounds.capacityBytes;
  }

  #dropOldest(): void {
    const bytes = this.#sizes.shift() as number;
    this.#bytes -= bytes;
    this.#values.shift();
    this.#count(bytes);
  }

  #dropNewest(bytes: number): void {
    const { capacity, capacityBytes, overflow } = this.#bounds;
    this.#count(bytes);
    if (overflow !== 'error') return;
    const what =
      bytes > capacityBytes
        ? `A value of ${bytes} bytes is larger than \`capacityBytes\``
        : `The consumer is slower than the feed: ${this.size} values of ${this.#bytes} bytes were waiting when a value of ${bytes} bytes arrived`;
    throw new OverflowError(what, capacity, capacityBytes);
  }

  #count(bytes: number): void {
    this.#tally.count(1, bytes, this.#bounds.scheduler.now());
  }

  #reportSafely(reason: 'overflow' | 'ended'): void {
    try {
      this.#tally.report(reason);
    } catch (error) {
      // The subscription has ended, so it has no error channel.
      reportUnhandled(error);
    }
  }
}

/** Reports an error that has no error channel: RxJS calls `config.onUnhandledError`, or throws the error in a separate task. */
export const reportUnhandled = (error: unknown): void => {
  throwError(() => error).subscribe();
};
