/** The first, highest, lowest and last price, the volume, and the number of trades. An array, because names would cost bytes. */
export type Candle = readonly [open: number, high: number, low: number, close: number, volume: number, trades: number];

/** The candles of a second. A market without trades in it has no candle. */
export interface CandleWindow {
  readonly kind: 'candles';
  /** In epoch ms; `start` belongs to it, `end` to the next one. */
  readonly start: number;
  readonly end: number;
  /** `false`: trades may be missing, because of an outage, or because the server started during this second. */
  readonly complete: boolean;
  /** The outages that reach into it, in epoch ms. The `to` of a current outage is the end of the window. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
  /** By the name of the market. */
  readonly candles: Readonly<Record<string, Candle>>;
}

/** The last price of a market. */
export interface LastPrice {
  readonly kind: 'price';
  readonly symbol: string;
  readonly price: number;
  /** When its frame was received, in epoch ms. */
  readonly at: number;
}

/** A value of the stream `/markets`. */
export type MarketValue = CandleWindow | LastPrice;

/** The answer of `/markets/history`. */
export interface MarketsHistory {
  readonly payload: 'made-up' | 'decoded' | 'unknown';
  /** The length of a candle in ms. */
  readonly candleMs: number;
  /** How long windows are stored, in ms. */
  readonly storedMs: number;
  /** Oldest first. */
  readonly windows: readonly CandleWindow[];
}
