// The application with this library.
import * as t from 'io-ts';
import { countWindow, decodeWith, shareFeed, tradeFeedEvents$, whereField } from '../../dist/index.js';
import { isLarge, summaryOf, WINDOW } from './work.mjs';

const Transaction = t.type({
  hash: t.string,
  from: t.string,
  nonce: t.number,
  value: t.string,
  gas: t.string,
  fee: t.string,
  input: t.string,
});

const Batch = t.type({
  batch: t.number,
  trades: t.array(
    t.type({
      transaction: t.string,
      wallet: t.string,
      market: t.string,
      side: t.string,
      price: t.string,
      amount: t.string,
    }),
  ),
});

const feed$ = (url) => tradeFeedEvents$('market', { baseUrl: url.replace('ws', 'http'), apiKey: 'bench-key' });

const each = (take) => (event) => {
  if (event.type === 'decoded') take(event.value);
};

/** Each runs until the process ends. */
export const run = {
  everything: ({ url, onFrame, onWindow, onTransaction }) => {
    const shared$ = feed$(url).pipe(decodeWith(Transaction), shareFeed());
    shared$
      .pipe(countWindow(WINDOW))
      .subscribe(({ frames, start, end }) => onWindow(summaryOf(frames.map(({ value }) => value)), end - start));
    shared$.subscribe((event) => {
      if (event.type !== 'decoded') return;
      onFrame();
      onTransaction(isLarge(event.value));
    });
  },
  wallets: ({ url, wallets, onWanted }) =>
    feed$(url)
      .pipe(whereField('trades[].wallet', new Set(wallets)), decodeWith(Batch))
      .subscribe(each(onWanted)),
  wallet: ({ url, wallets: [wallet], onWanted }) =>
    feed$(url).pipe(whereField('trades[].wallet', wallet), decodeWith(Batch)).subscribe(each(onWanted)),
};
