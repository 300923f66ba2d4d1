// Subscribes in two files. Prints warnings, frames and ends as they come: `node first.mjs '{"how":"at once"}'`.
import { Subscription } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { subscribeTo } from './second.mjs';

const { how, hasKeyFunction = false, ...options } = JSON.parse(process.argv[2]);
if (hasKeyFunction) options.apiKey = async () => process.env.TRADE_FEED_API_KEY;
process.on('warning', ({ name, code, message }) => console.log(`${name} ${code}: ${message}`));

const all = new Subscription();
/** Calls the function with the first frame. The program exits when a feed ends, or when there's nothing left to do. */
const observer = (name, onFirst = () => all.unsubscribe()) => {
  let isFirst = true;
  return {
    next: () => {
      if (!isFirst) return;
      isFirst = false;
      console.log(name);
      onFirst();
    },
    error: (failure) => {
      console.log(`${name} ended: ${failure.code}`);
      all.unsubscribe();
    },
  };
};
const wait = () => undefined;

const feed$ = tradeFeed$('market', options); // the first place
const ways = {
  'at once': () => {
    all.add(feed$.subscribe(observer('first', wait)));
    all.add(subscribeTo(options, observer('second', wait)));
  },
  later: () => {
    all.add(feed$.subscribe(observer('first', () => all.add(subscribeTo(options, observer('second', wait))))));
  },
  'to one Observable': () => {
    for (const name of ['first', 'second']) all.add(feed$.subscribe(observer(name, wait)));
  },
};
ways[how]();
