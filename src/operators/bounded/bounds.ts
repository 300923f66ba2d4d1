import { asyncScheduler, type SchedulerLike } from 'rxjs';
import { aFunction, aScheduler, oneOf, positiveCount, type Rule } from '../../protocol/rules.js';
import type { DropReport } from './drop-report.js';
import { bytesOf } from '../items/item.js';

/** What happens when the bounds are reached. */
export type Overflow = 'drop-oldest' | 'drop-newest' | 'error';

/** How many values may wait for a consumer, and what happens beyond that. */
export interface BoundOptions<T = unknown> {
  /** The maximum number of waiting values, 1 or more. @defaultValue 10 000 */
  readonly capacity?: number | undefined;
  /**
   * The maximum size of all waiting values in bytes, above 0. A value that uses less than 3/4 of its buffer is copied, to release that
   * buffer. A single value larger than `capacityBytes` is dropped, or causes the error. No other value is dropped for it.
   *
   * @defaultValue 64 MiB
   */
  readonly capacityBytes?: number | undefined;
  /**
   * `drop-oldest` makes room for the new value, `drop-newest` drops it, `error` ends with an {@link OverflowError}.
   *
   * @defaultValue `'drop-oldest'`
   */
  readonly overflow?: Overflow | undefined;
  /**
   * Returns the size of a value in bytes.
   *
   * @defaultValue the size of a frame, of a decoded frame's payload, of a byte array, of a text in UTF-16; 0 for any other value
   */
  readonly bytesOf?: ((value: T) => number) | undefined;
  /** Called with a report of many drops, not once per value. @defaultValue drops are not reported */
  readonly onDrop?: ((report: DropReport) => void) | undefined;
  /** The clock of the reports. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The options with all defaults. */
export interface Bounds<T> {
  readonly capacity: number;
  readonly capacityBytes: number;
  readonly overflow: Overflow;
  readonly bytesOf: (value: T) => number;
  readonly onDrop: ((report: DropReport) => void) | undefined;
  readonly scheduler: SchedulerLike;
}

/** The defaults. */
export const boundDefaults: Bounds<unknown> = Object.freeze({
  capacity: 10_000,
  capacityBytes: 64 * 1024 * 1024,
  overflow: 'drop-oldest',
  bytesOf,
  onDrop: undefined,
  scheduler: asyncScheduler,
});

/** The rules that the options are checked against. */
export const boundRules: Readonly<Record<keyof BoundOptions, Rule>> = {
  capacity: positiveCount,
  capacityBytes: { allowed: 'a number of bytes above 0', is: (v) => typeof v === 'number' && v > 0 },
  overflow: oneOf('drop-oldest', 'drop-newest', 'error'),
  bytesOf: aFunction,
  onDrop: aFunction,
  scheduler: aScheduler,
};
