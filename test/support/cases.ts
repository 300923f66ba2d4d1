import { it } from '@jest/globals';

/** Whether tests run all their cases: CI sets `RX_TRADE_FEED_ALL_CASES=1`. */
export const isAllCases = process.env['RX_TRADE_FEED_ALL_CASES'] === '1';

/** Returns how many random cases a property runs: all, or a tenth. */
export const cases = (all: number): number => (isAllCases ? all : Math.ceil(all / 10));

/** Defines a test that only CI runs. A whole file of them begins with the mark `@ci`: see scripts/lanes.mjs. */
export const itInCi = isAllCases ? it : it.skip;
