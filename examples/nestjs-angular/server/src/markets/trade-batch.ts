import * as t from 'io-ts';
import type { Decoded, Frame, LifecycleEvent } from 'rx-trade-feed';

/**
 * Reads the payload of the demo's local service: several trades in a frame.
 *
 * These trades are made up: the contract of the service doesn't describe the payload. If you know the payload of your service, write its
 * codec here and name it in `payload.ts`.
 */
export const TradeBatch = t.type({
  trades: t.array(t.type({ symbol: t.string, price: t.number, size: t.number })),
});

/** Several trades, oldest first. */
export type TradeBatch = t.TypeOf<typeof TradeBatch>;

/** An output of `decodeWith`: trades with their frame, or an event of the connection. */
export type TradeEvent = LifecycleEvent | Decoded<TradeBatch, Frame<Uint8Array>>;
