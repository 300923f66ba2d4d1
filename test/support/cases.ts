/**
 * Returns how many random cases a property runs: a tenth of `all`, or all of them with `RX_TRADE_FEED_ALL_CASES=1`, which CI sets.
 */
export const cases = (all: number): number =>
  process.env['RX_TRADE_FEED_ALL_CASES'] === '1' ? all : Math.ceil(all / 10);
