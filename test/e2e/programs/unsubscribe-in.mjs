// Unsubscribes at the first event of a type. Then the process must exit.
import { tradeFeedEvents$ } from 'rx-trade-feed';

const subscription = tradeFeedEvents$('market').subscribe((event) => {
  if (event.type !== process.argv[2]) return;
  console.log(event.type);
  setImmediate(() => subscription.unsubscribe());
});
