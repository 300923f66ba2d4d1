/**
 * The error of an operator with `overflow: 'error'`: the consumer was slower than the feed, and the bounds were reached.
 *
 * @example
 * ```ts
 * import { Subject, timer } from 'rxjs';
 * import { mergeMapBounded, OverflowError } from 'rx-trade-feed';
 *
 * const numbers = new Subject<number>();
 * numbers.pipe(mergeMapBounded(() => timer(1_000), { capacity: 1, overflow: 'error' })).subscribe({
 *   error: (error) => {
 *     if (error instanceof OverflowError) console.log(error.message);
 *   },
 * });
 * [1, 2, 3].forEach((n) => numbers.next(n)); // one is processed, one waits, one is too many
 * ```
 */
export class OverflowError extends Error {
  override readonly name = 'OverflowError';
  /** The maximum number of waiting values. */
  readonly capacity: number;
  /** The maximum size of the waiting values, in bytes. */
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
