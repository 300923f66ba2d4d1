// @ts-check
// A display that changes twice a second doesn't need every frame. `conflate`
// emits the newest value of each key, and the number of values that it
// replaces. Here the key is the leading digit of a transaction's hash.
//
//   node examples/conflate.mjs
import { bufferCount, filter, lastValueFrom, map, take, tap } from 'rxjs';
import { conflate, tradeFeed$ } from 'rx-trade-feed';
import { pendingTransactions$ } from 'rx-trade-feed/testing';
import { withService } from './support/with-service.mjs';

/**
 * @param {unknown} payload
 * @returns {payload is { hash: string }}
 */
const hasHash = (payload) =>
  typeof payload === 'object' &&
  payload !== null &&
  'hash' in payload &&
  typeof payload.hash === 'string';

await withService(
  async (options) => {
    let all = 0;
    let shown = 0;
    const newest$ = tradeFeed$('raw', options).pipe(
      map((frame) => frame.json()),
      filter(hasHash),
      tap(() => (all += 1)),
      conflate(({ hash }) => (/^0x[0-7]/.test(hash) ? 'low ' : 'high'), 500),
      tap(({ key, value, count }) => {
        shown += count;
        const hash = value.hash.slice(0, 12);
        console.log(`${key}  ${hash}…  newest of ${count}`);
      }),
      bufferCount(2),
      take(2),
    );
    await lastValueFrom(newest$);
    console.log(`4 values shown for ${shown} of ${all}`);
  },
  { raw: pendingTransactions$({ rate: 200 }) },
);
