// The program that the tests bundle. Prints `works` at the first frame, otherwise the code of the error, and its message on the next line.
import { filter, take } from 'rxjs';
import { isTradeFeedError, tradeFeedEvents$ } from 'rx-trade-feed';

tradeFeedEvents$('market', { receiveIn: process.env.RECEIVE_IN })
  .pipe(
    filter(({ type }) => type === 'frame' || type === 'reconnecting'),
    take(1),
  )
  .subscribe({
    next: ({ type }) => console.log(type === 'frame' ? 'works' : 'reconnects'),
    error: (error) => console.log(`${isTradeFeedError(error) ? error.code : 'no TradeFeedError'}\n${error.message}`),
  });
