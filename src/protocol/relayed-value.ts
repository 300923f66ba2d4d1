/**
 * A value that an operator on the server created from the feed, received over a relay (`select`).
 *
 * @example
 * ```ts
 * import { type RelayedValue, relayFeed$ } from 'rx-trade-feed/browser';
 *
 * interface Price {
 *   readonly symbol: string;
 *   readonly price: number;
 * }
 *
 * relayFeed$<Price>('https://app.example.com/prices').subscribe((event) => {
 *   if (event.type === 'value') show(event);
 * });
 * const show = ({ at, value }: RelayedValue<Price>) => console.log(new Date(at), value.symbol, value.price);
 * ```
 */
export interface RelayedValue<T> {
  readonly type: 'value';
  /** In epoch ms: the time of the frame, or the end of the window, or the time of the event that caused the value. It never decreases. */
  readonly at: number;
  /** The value that the operator emitted, after JSON: an instance of a class is a plain object here. */
  readonly value: T;
}

/** Returns whether a value is a {@link RelayedValue}, not a frame, an event or another item. */
export const isRelayedValue = (value: unknown): value is RelayedValue<unknown> => {
  const { type, at } = Object(value) as Partial<Record<'type' | 'at', unknown>>;
  return type === 'value' && typeof at === 'number' && Object.hasOwn(value as object, 'value');
};
