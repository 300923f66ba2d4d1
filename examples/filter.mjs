// @ts-check
// Selects large transactions from the raw feed with plain RxJS operators:
// parse, check, filter, map. The contract of the service doesn't define the
// payload, so check it after parsing. This check fits the local service.
//
//   node examples/filter.mjs
import { filter, lastValueFrom, map, take, tap } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { pendingTransactions$ } from 'rx-trade-feed/testing';
import { withService } from './support/with-service.mjs';

/** @typedef {{ hash: string, value: string }} Transaction */

/**
 * @param {unknown} payload
 * @returns {payload is Transaction}
 */
const isTransaction = (payload) =>
  typeof payload === 'object' &&
  payload !== null &&
  'hash' in payload &&
  'value' in payload &&
  typeof payload.value === 'string';

const gwei = 1_000_000_000n;
const least = 900_000_000n * gwei;

await withService(
  async (options) => {
    let seen = 0;
    const large$ = tradeFeed$('raw', options).pipe(
      tap(() => (seen += 1)),
      map((frame) => frame.json()),
      filter(isTransaction),
      map(({ hash, value }) => ({ hash, value: BigInt(value) })),
      filter(({ value }) => value >= least),
      take(5),
      tap(({ hash, value }) =>
        console.log(`${hash.slice(0, 12)}…  ${value / gwei} gwei`),
      ),
    );
    await lastValueFrom(large$);
    console.log(`5 large ones in ${seen} transactions`);
  },
  { raw: pendingTransactions$({ rate: 200 }) },
);
