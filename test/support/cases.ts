/** Whether tests run all their cases: CI sets `RX_TRADE_FEED_ALL_CASES=1`. */
export const isAllCases = process.env['RX_TRADE_FEED_ALL_CASES'] === '1';

/** Returns how many random cases a property runs: all, or a tenth. */
export const cases = (all: number): number => (isAllCases ? all : Math.ceil(all / 10));
