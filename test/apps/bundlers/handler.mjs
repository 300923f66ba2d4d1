// A function as serverless runtimes call it: one module, many calls.
import { lastValueFrom, map, take, toArray } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';

export const handler = () =>
  lastValueFrom(
    tradeFeed$('market').pipe(
      take(3),
      map((frame) => frame.text()),
      toArray(),
    ),
  );
