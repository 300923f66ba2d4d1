/**
 * The newest value of a key in a period of `conflate`.
 *
 * @example
 * ```ts
 * import { Conflated } from 'rx-trade-feed';
 *
 * const newest = new Conflated('EURUSD', { price: 1.1 }, 3);
 * console.log(`${newest.value.price}, the newest of ${newest.count}`); // 1.1, the newest of 3
 * ```
 */
export class Conflated<T, K> {
  readonly type = 'conflated' as const;
  readonly key: K;
  /** The newest value of the key. */
  readonly value: T;
  /** The number of values of the key in the period, including the newest. */
  readonly count: number;

  constructor(key: K, value: T, count: number) {
    this.key = key;
    this.value = value;
    this.count = count;
  }
}
