/**
 * A value that an operator on the server made of the feed, received over a relay (`select`).
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
  /** The time of the value in epoch ms: of its frame, of the end of its window; else of the event that it was made of. It never goes back. */
  readonly at: number;
  /** What the operator emitted, as JSON has it. A class of the server is a plain object here. */
  readonly value: T;
}

/** Tells a value that came over a relay from frames, events and other items. */
export const isRelayedValue = (value: unknown): value is RelayedValue<unknown> => {
  const { type, at } = Object(value) as Partial<Record<'type' | 'at', unknown>>;
  return type === 'value' && typeof at === 'number' && Object.hasOwn(value as object, 'value');
};
