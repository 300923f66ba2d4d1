import type { Codec } from 'rx-trade-feed';
import type { Settings } from '../settings.js';
import { TradeBatch } from './trade-batch.js';

/** Describes the payload of the frames. */
export interface Payload {
  /** Reads the trades in a frame; `undefined`: the payload isn't known, so there are no candles. */
  readonly codec: Codec<TradeBatch> | undefined;
  /** Shown by the page. */
  readonly kind: PayloadKind;
}

/** `made-up`: trades of the local service. `decoded`: trades of a real one, by your codec. `unknown`: nothing reads the payload. */
export type PayloadKind = 'made-up' | 'decoded' | 'unknown';

/**
 * Chooses the codec of the payload.
 *
 * For a real service return `{ codec: YourCodec, kind: 'decoded' }` here. The output of the codec must be a {@link TradeBatch}.
 */
export const payloadOf = ({ isRemote, feed }: Settings): Payload =>
  isRemote || feed === 'raw' ? { codec: undefined, kind: 'unknown' } : { codec: TradeBatch, kind: 'made-up' };
