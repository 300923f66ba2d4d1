/** Whether tests run all their cases: with `RX_TRADE_FEED_ALL_CASES=1`, which CI sets. */
export const isAllCases = process.env['RX_TRADE_FEED_ALL_CASES'] === '1';

/** Returns how many random cases a property runs: all of them, or a tenth. */
export const cases = (all: number): number => (isAllCases ? all : Math.ceil(all / 10));
