// @ts-check
// Selects transfers from the raw feed: first a filter over the bytes, then a
// codec for the remaining frames. A frame that the codec refuses is reported,
// and the feed continues.
//
//   node examples/decode.mjs
import * as t from 'io-ts';
import { filter, lastValueFrom, map, take, tap } from 'rxjs';
import {
  decodeWith,
  frames,
  tradeFeedEvents$,
  whereBytes,
} from 'rx-trade-feed';
import { pendingTransactions$ } from 'rx-trade-feed/testing';
import { withService } from './support/with-service.mjs';

const Transaction = t.type({
  hash: t.string,
  from: t.string,
  to: t.string,
  value: t.string,
});
// The selector of `transfer(address,uint256)`, in this example: calls of one
// kind.
const needle = '"input":"0xa9059cbb';

// Every eighth transaction of the local service is one that the codec refuses.
const odd = `{"hash":"0x00","from":"0x01","to":null,"value":"0x0",${needle}"}`;
const transactions$ = pendingTransactions$({ rate: 200 }).pipe(
  map((text, n) => (n % 8 === 0 ? odd : text)),
);

await withService(
  async (options) => {
    let all = 0;
    const transfers$ = tradeFeedEvents$('raw', options).pipe(
      tap((event) => (all += event.type === 'frame' ? 1 : 0)),
      whereBytes(needle),
      decodeWith(Transaction, {
        onInvalid: ({ issues }) => {
          const reasons = issues.map(
            ({ path, message }) => `${path} ${message}`,
          );
          console.log(`left out: ${reasons}`);
        },
      }),
      // Removes the lifecycle events, which pass through the operators above.
      frames(),
      map(({ value }) => value),
      filter(({ to }) => to.startsWith('0x')),
      take(5),
      tap(({ hash, to }) =>
        console.log(`${hash.slice(0, 12)}…  to ${to.slice(0, 12)}…`),
      ),
    );
    await lastValueFrom(transfers$);
    console.log(`5 of ${all} frames`);
  },
  { raw: transactions$ },
);
