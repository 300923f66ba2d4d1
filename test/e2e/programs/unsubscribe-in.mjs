// Unsubscribes at the first event of a kind: nothing may keep this process alive.
import { tradeFeedEvents$ } from 'rx-trade-feed';

const subscription = tradeFeedEvents$('market').subscribe((event) => {
  if (event.type !== process.argv[2]) return;
  console.log(event.type);
  setImmediate(() => subscription.unsubscribe());
});
