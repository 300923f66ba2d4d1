// @ts-check
// The pipeline under test. It counts the trades of each market, and continues after reconnects. It is an operator, so a test can apply it to any
// Observable of frames, and your app to the real feed.
import { filter, map, mergeMap, scan } from 'rxjs';

/** @typedef {{ market: string }} Trade */

/** @param {unknown} payload @returns {Trade[]} */
const tradesOf = (payload) =>
  typeof payload === 'object' && payload !== null && 'trades' in payload && Array.isArray(payload.trades)
    ? payload.trades
    : [];

/** @returns {import('rxjs').OperatorFunction<import('rx-trade-feed').Frame, Readonly<Record<string, number>>>} */
export const tradeCounter = () => (frames$) =>
  frames$.pipe(
    filter((frame) => !frame.isBinary),
    map((frame) => tradesOf(frame.json())),
    mergeMap((trades) => trades),
    scan(
      (counts, { market }) => ({ ...counts, [market]: (counts[market] ?? 0) + 1 }),
      /** @type {Record<string, number>} */ ({}),
    ),
  );
