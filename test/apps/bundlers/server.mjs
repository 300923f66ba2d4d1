// A server that receives until SIGTERM. Prints what happens, except frames.
import { isTradeFeedError, tradeFeedEvents$ } from 'rx-trade-feed';

const feed = tradeFeedEvents$('market', { warnings: false }).subscribe({
  next: ({ type }) => type !== 'frame' && console.log(type),
  error: (error) => console.log(isTradeFeedError(error) ? error.code : error),
});
process.once('SIGTERM', () => feed.unsubscribe());
