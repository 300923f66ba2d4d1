// The application with this library.
import * as t from 'io-ts';
import { countWindow, decodeWith, shareFeed, tradeFeedEvents$ } from '../../dist/index.js';
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

/** Runs until the process ends. `onWindow` is called for each window, and `onTransaction` for each transaction. */
export const run = ({ origin, path, onWindow, onTransaction }) => {
  const options = { baseUrl: origin.replace('ws', 'http') + path, apiKey: 'bench-key' };
  const shared$ = tradeFeedEvents$('market', options).pipe(decodeWith(Transaction), shareFeed());
  shared$
    .pipe(countWindow(WINDOW))
    .subscribe(({ frames, start, end }) => onWindow(summaryOf(frames.map(({ value }) => value)), end - start));
  shared$.subscribe((event) => {
    if (event.type === 'decoded') onTransaction(isLarge(event.value));
  });
};
