import { invalidOption } from '../../protocol/rules.js';
import type { Bounds } from './bounds.js';
import { DropTally } from './drop-tally.js';
import { type Held, Holding } from '../memory/holding.js';
import { bytesOf } from '../items/item.js';
import { OverflowError } from './overflow-error.js';
import { Ring } from './ring.js';
import { reportUnhandled } from './unhandled.js';

/**
 * Holds the values of one subscription that wait for its consumer, within bounds, and tells what it had to drop.
 *
 * Each step takes constant time (amortized).
 */
export class BoundedQueue<T> {
  readonly #bounds: Bounds<T>;
  readonly #holding = new Holding<T>();
  readonly #values = new Ring<Held<T>>();
  // Sizes as they were counted: a value that changes while it waits must not make the sum drift.
  readonly #sizes = new Ring<number>();
  readonly #tally: DropTally;
  readonly #countsSlack: boolean;
  #bytes = 0;
  #hasEnded = false;

  constructor(bounds: Bounds<T>) {
    this.#bounds = bounds;
    // A function of the caller may count something other than bytes of memory.
    this.#countsSlack = bounds.bytesOf === bytesOf;
    this.#tally = new DropTally(bounds.onDrop);
  }

  /** How many values wait. */
  get size(): number {
    return this.#values.size;
  }

  /** Whether {@link end} was called. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Puts a value at the end, and drops what the bounds ask for.
   *
   * @throws OverflowError by the policy `error`; what `bytesOf` or `onDrop` throws. The queue and its counts are right in each case
   */
  offer(value: T): void {
    const bytes = this.#sizeOf(value);
    if (this.#makesRoomFor(bytes)) {
      this.#values.push(this.#holding.hold(value));
      this.#sizes.push(bytes);
      this.#bytes += bytes;
    } else {
      this.#dropNewest(bytes);
    }
    if (this.#tally.isOverdue) this.#tally.tell('overflow');
  }

  /** Takes the first value out; ask for the `size` before. Call {@link settle} when the value was handed on. */
  take(): T {
    this.#bytes -= this.#sizes.shift() as number;
    return this.#holding.release(this.#values.shift() as Held<T>);
  }

  /**
   * Tells of the drops if the queue is at most half full again: a crossing of the bounds is not over before, or it would be many.
   *
   * @throws what `onDrop` throws
   */
  settle(): void {
    if (this.#tally.isOpen && this.#isHalfEmpty()) this.#tally.tell('overflow');
  }

  /** Drops what waits and tells of everything that is not yet told; what `onDrop` throws is an unhandled error of RxJS. */
  end(): void {
    this.#hasEnded = true;
    const { size } = this;
    const bytes = this.#bytes;
    this.#values.clear();
    this.#holding.clear();
    this.#sizes.clear();
    this.#bytes = 0;
    this.#tellOrReport('overflow');
    this.#tally.count(size, bytes, this.#bounds.scheduler.now());
    this.#tellOrReport('ended');
  }

  get #bytesInUse(): number {
    return this.#countsSlack ? this.#bytes + this.#holding.slack : this.#bytes;
  }

  #sizeOf(value: T): number {
    try {
      const bytes = this.#bounds.bytesOf(value);
      if (Number.isSafeInteger(bytes) && bytes >= 0) return bytes;
      throw invalidOption('bytesOf', 'a function that gives a whole number of bytes, 0 or more', bytes);
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
    return this.size < this.#bounds.capacity && this.#bytesInUse + bytes <= this.#bounds.capacityBytes;
  }

  #isHalfEmpty(): boolean {
    return this.size * 2 <= this.#bounds.capacity && this.#bytesInUse * 2 <= this.#bounds.capacityBytes;
  }

  #dropOldest(): void {
    const bytes = this.#sizes.shift() as number;
    this.#bytes -= bytes;
    this.#holding.release(this.#values.shift() as Held<T>);
    this.#count(bytes);
  }

  #dropNewest(bytes: number): void {
    const { capacity, capacityBytes, overflow } = this.#bounds;
    this.#count(bytes);
    if (overflow !== 'error') return;
    const what =
      bytes > capacityBytes
        ? `A value of ${bytes} bytes came, which is too large to wait`
        : `The consumer is slower than the feed: ${this.size} values of ${this.#bytesInUse} bytes were waiting when another of ${bytes} bytes came`;
    throw new OverflowError(what, capacity, capacityBytes);
  }

  #count(bytes: number): void {
    this.#tally.count(1, bytes, this.#bounds.scheduler.now());
  }

  #tellOrReport(reason: 'overflow' | 'ended'): void {
    try {
      this.#tally.tell(reason);
    } catch (error) {
      // At the end there is no error channel left.
      reportUnhandled(error);
    }
  }
}
