// Prints everything that a program can get at in a feed, in every way that Node offers.
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import { take } from 'rxjs';
import { tradeFeed$, tradeFeedEvents$ } from 'rx-trade-feed';
import { Agent as Dispatcher } from 'undici';

const print = (value) => {
  console.log(value, String(value), JSON.stringify(value));
  console.log(inspect(value, { depth: null, showHidden: true, getters: true }));
};
const agents = process.argv.includes('own')
  ? { agent: new Agent({ keepAlive: true }), dispatcher: new Dispatcher() }
  : {};
const options = { ...agents, backoff: { initialDelayMs: 1, maxDelayMs: 2 } };

print(tradeFeed$('market', options));
tradeFeedEvents$('market', options)
  .pipe(take(40))
  .subscribe({
    next: print,
    error: (error) => {
      print(error);
      agents.dispatcher?.close();
    },
  });
