// Subscribes in two files, in the second one after the first frame. Prints warnings, and the code of the end.
import { Subscription, share, take } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { subscribeTo } from './second.mjs';

const options = { receiveIn: 'worker', apiKey: async () => process.env.TRADE_FEED_API_KEY };
process.on('warning', ({ name, code, message }) => console.log(`${name} ${code}: ${message}`));

const all = new Subscription();
const error = (failure) => {
  console.log(`ended: ${failure.code}`);
  all.unsubscribe();
};
const first$ = tradeFeed$('market', options).pipe(share()); // the first place
all.add(first$.subscribe({ error }));
all.add(first$.pipe(take(1)).subscribe(() => all.add(subscribeTo(options, { error }))));
