import { asyncScheduler, noop, type SchedulerLike, throwError } from 'rxjs';
import { aFunction, aScheduler, invalidOption, oneOf, positiveCount, type Rule } from '../../protocol/validate.js';
import { bytesOf, withOwnBytes } from '../items/item.js';
import { SizedQueue } from './ring.js';

/** What happens when the bounds are reached. */
export type Overflow = 'drop-oldest' | 'drop-newest' | 'error';

/** Says how many values may wait for a consumer, and what happens beyond that. */
export interface BoundOptions<T = unknown> {
  /** How many values may wait, 1 or more. @defaultValue 10 000 */
  readonly capacity?: number | undefined;
  /**
   * How many bytes may wait, above 0. A value that uses less than 3/4 of its buffer is copied, because it would keep
   * the whole buffer alive. If a single value is larger than `capacityBytes`, it's dropped itself, or causes the error;
   * it doesn't push out any other. @defaultValue 64 MiB
   */
  readonly capacityBytes?: number | undefined;
  /**
   * `drop-oldest` makes room for the new value, `drop-newest` drops it, `error` ends with an {@link OverflowError}.
   * @defaultValue `'drop-oldest'`
   */
  readonly overflow?: Overflow | undefined;
  /**
   * Returns the size of a value in bytes. @defaultValue the size of a frame, of a decoded frame's payload, of a byte
   * array, of a text in UTF-16; 0 for any other value
   */
  readonly bytesOf?: ((value: T) => number) | undefined;
  /** Gets a report about many drops at once, not one per value. @defaultValue drops are not reported */
  readonly onDrop?: ((report: DropReport) => void) | undefined;
  /** The clock of the reports. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

export type Bounds<T> = { readonly [Name in keyof BoundOptions<T>]-?: NonNullable<BoundOptions<T>[Name]> };

export const boundDefaults: Bounds<unknown> = Object.freeze({
  capacity: 10_000,
  capacityBytes: 64 * 1024 * 1024,
  overflow: 'drop-oldest',
  bytesOf,
  onDrop: noop,
  scheduler: asyncScheduler,
});

export const boundRules: Readonly<Record<keyof BoundOptions, Rule>> = {
  capacity: positiveCount,
  capacityBytes: { allowed: 'a number of bytes above 0', is: (v) => typeof v === 'number' && v > 0 },
  overflow: oneOf('drop-oldest', 'drop-newest', 'error'),
  bytesOf: aFunction,
  onDrop: aFunction,
  scheduler: aScheduler,
};

/** Reports what a bounded operator has dropped. See {@link mergeMapBounded} for when you get one. */
export interface DropReport {
  /**
   * `overflow`: the consumer was slower than the feed, and the bounds were reached. `ended`: the values were still
   * waiting, within the bounds, when an error or unsubscribing ended the subscription early.
   */
  readonly reason: 'overflow' | 'ended';
  /**
   * Values dropped since the last report. Add up all reports of a subscription to get everything it dropped.
   */
  readonly dropped: number;
  /** The size of these values. */
  readonly droppedBytes: number;
  /** Values dropped since you subscribed. */
  readonly total: number;
  /** When the first of these values was dropped, in epoch ms. */
  readonly from: number;
  /** When the last of these values was dropped, in epoch ms. */
  readonly to: number;
}

/**
 * The error of an operator with `overflow: 'error'`: the consumer was slower than the feed.
 *
 * @example
 * ```ts
 * import { from, timer } from 'rxjs';
 * import { mergeMapBounded, OverflowError } from 'rx-trade-feed';
 *
 * from([1, 2, 3]) // one is processed, one waits, one is too many
 *   .pipe(mergeMapBounded(() => timer(1_000), { capacity: 1, overflow: 'error' }))
 *   .subscribe({
 *     error: (error) =>
 *       error instanceof OverflowError && console.log(error.message),
 *   });
 * ```
 */
export class OverflowError extends Error {
  override readonly name = 'OverflowError';
  /** How many values may wait. */
  readonly capacity: number;
  /** How many bytes may wait. */
  readonly capacityBytes: number;

  constructor(what: string, capacity: number, capacityBytes: number) {
    super(
      `${what}. The bounds are ${capacity} values and ${capacityBytes} bytes. Make the consumer faster, raise \`capacity\` or ` +
        '`capacityBytes`, or choose an `overflow` that drops.',
    );
    this.capacity = capacity;
    this.capacityBytes = capacityBytes;
  }
}

const maxReportIntervalMs = 1_000;

/** Queues values within bounds, and reports many drops at once. Each step takes constant time (amortized). */
export class BoundedQueue<T> {
  readonly #bounds: Bounds<T>;
  // With the size as counted on arrival, so the sum stays correct even if a value changes while it waits.
  readonly #waiting = new SizedQueue<{ readonly value: T; readonly bytes: number }>();
  /** The drops that aren't reported yet. */
  #drops: Omit<DropReport, 'reason' | 'total'> | undefined;
  #total = 0;

  constructor(bounds: Bounds<T>) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Adds a value at the end, and drops values beyond the bounds.
   *
   * @throws OverflowError with the policy `error`; the errors of `bytesOf` and `onDrop`. The queue and the counts stay
   *   correct in each case
   */
  offer(value: T): void {
    const { capacityBytes, overflow } = this.#bounds;
    const bytes = this.#sizeOf(value);
    if (bytes <= capacityBytes && overflow === 'drop-oldest')
      while (!this.#hasRoomFor(bytes)) this.#count(1, this.#shift().bytes);
    if (this.#hasRoomFor(bytes)) this.#waiting.push({ value: withOwnBytes(value), bytes });
    else {
      this.#count(1, bytes);
      if (overflow === 'error') throw this.#overflowOf(bytes);
    }
    const { from, to } = this.#drops ?? { from: 0, to: 0 };
    // `abs`, because the clock may be set back.
    if (Math.abs(to - from) >= maxReportIntervalMs) this.#report('overflow');
  }

  /** Removes and returns the first value. Check `size` before; call {@link settle} once the consumer has it. */
  take(): T {
    return this.#shift().value;
  }

  /**
   * Reports drops once the queue is at most half full, which ends the overflow. Ending it any earlier would report many
   * overflows of a queue that stays near its bounds.
   *
   * @throws the error of `onDrop`
   */
  settle(): void {
    const { capacity, capacityBytes } = this.#bounds;
    if (this.size * 2 <= capacity && this.#waiting.bytes * 2 <= capacityBytes) this.#report('overflow');
  }

  /** Drops all waiting values and reports all drops. If `onDrop` throws, RxJS gets an unhandled error. */
  end(): void {
    const { size, bytes } = this.#waiting;
    this.#waiting.clear();
    this.#reportSafely('overflow');
    if (size > 0) this.#count(size, bytes);
    this.#reportSafely('ended');
  }

  #shift() {
    return this.#waiting.shift() as { readonly value: T; readonly bytes: number };
  }

  #sizeOf(value: T): number {
    try {
      const bytes = this.#bounds.bytesOf(value);
      if (Number.isSafeInteger(bytes) && bytes >= 0) return bytes;
      throw invalidOption('bytesOf', 'a function that returns a whole number of bytes, 0 or more', bytes);
    } catch (error) {
      this.#count(1, 0);
      throw error;
    }
  }

  #hasRoomFor(bytes: number): boolean {
    return this.size < this.#bounds.capacity && this.#waiting.bytes + bytes <= this.#bounds.capacityBytes;
  }

  #overflowOf(bytes: number): OverflowError {
    const { capacity, capacityBytes } = this.#bounds;
    const what =
      bytes > capacityBytes
        ? `A value of ${bytes} bytes is larger than \`capacityBytes\``
        : `The consumer is slower than the feed: ${this.size} values of ${this.#waiting.bytes} bytes were waiting when a value of ${bytes} bytes arrived`;
    return new OverflowError(what, capacity, capacityBytes);
  }

  #count(values: number, bytes: number): void {
    const to = this.#bounds.scheduler.now();
    const { dropped, droppedBytes, from } = this.#drops ?? { dropped: 0, droppedBytes: 0, from: to };
    this.#drops = { dropped: dropped + values, droppedBytes: droppedBytes + bytes, from, to };
    this.#total += values;
  }

  /** Reports the drops since the last report, if any. They count as reported even if `onDrop` throws. */
  #report(reason: DropReport['reason']): void {
    const drops = this.#drops;
    // Reset before the call, because `onDrop` may throw or cause more drops.
    this.#drops = undefined;
    if (drops) this.#bounds.onDrop({ reason, ...drops, total: this.#total });
  }

  #reportSafely(reason: DropReport['reason']): void {
    try {
      this.#report(reason);
    } catch (error) {
      // The subscription has ended, so no subscriber would receive the error.
      reportUnhandled(error);
    }
  }
}

/** Reports an error that no subscriber can receive: RxJS calls `config.onUnhandledError`, or throws it in a task. */
export const reportUnhandled = (error: unknown): void => {
  throwError(() => error).subscribe();
};
