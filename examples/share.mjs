// @ts-check
// First the problem: an account has one connection, so a second subscription
// closes the first. Then the solution: three consumers share one subscription,
// and the connection stays open for a second after the last one has left.
//
//   node examples/share.mjs
import {
  catchError,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  mergeMap,
  of,
  take,
  tap,
  toArray,
} from 'rxjs';
import { frames, shareFeed, tradeFeed$, tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options) => {
  console.log('Two subscriptions of one account:');
  // Without this option the process is warned, with both places.
  const quiet = { ...options, warnings: false };
  const second$ = tradeFeed$('market', quiet).pipe(ignoreElements());
  const first$ = tradeFeed$('market', quiet).pipe(
    // When the first subscription receives a frame, the second one starts.
    mergeMap((_frame, index) => (index === 0 ? second$ : [])),
    catchError((failure) => of(failure)),
  );
  const failure = await firstValueFrom(first$);
  console.log(`  the first one ended with ${failure.code}`);

  console.log('Three consumers of one shared subscription:');
  let connections = 0;
  const frames$ = tradeFeedEvents$('market', options).pipe(
    tap((event) => {
      if (event.type === 'opened') connections += 1;
    }),
    frames(),
    shareFeed({ lingerMs: 1_000 }),
  );
  const [texts, sizes] = await Promise.all([
    lastValueFrom(
      frames$.pipe(
        take(5),
        map((frame) => frame.text()),
        toArray(),
      ),
    ),
    lastValueFrom(
      frames$.pipe(
        take(5),
        map((frame) => frame.data.length),
        toArray(),
      ),
    ),
  ]);
  // Both have left. A subscriber within the next second reuses the connection.
  await firstValueFrom(frames$);
  const [read, measured] = [texts.length, sizes.length];
  console.log(
    `  one read ${read} frames, one measured ${measured}, one joined late`,
  );
  console.log(`  connections: ${connections}`);
});
