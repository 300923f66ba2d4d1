/**
 * Says that a consumer was slower than the feed, by more than its bounds allow: what `overflow: 'error'` ends with.
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
 * [1, 2, 3].forEach((n) => numbers.next(n)); // one at work, one waits, one too many
 * ```
 */
export class OverflowError extends Error {
  override readonly name = 'OverflowError';
  /** How many values could wait. */
  readonly capacity: number;
  /** How many bytes could wait. */
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
